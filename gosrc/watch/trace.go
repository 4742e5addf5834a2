package watch

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// GC is a GC cycle, from a line that GODEBUG=gctrace=1 printed.
type GC struct {
	At     float64 // seconds since the start of the program
	Before int     // heap at the start of the cycle, in MiB
	Live   int     // live heap at the end of the cycle, in MiB
	Goal   int     // heap goal of the cycle, in MiB, or 0 if there was none
	Forced bool    // whether the program asked for it, as with runtime.GC
}

var gcLine = regexp.MustCompile(`\bgc \d+ @(\S+)s .* (\d+)->\d+->(\d+) MB, (\d+) MB goal(?:.*(\(forced\)))?`)

// Trace returns the GC cycles in the output of a program with GODEBUG=gctrace=1. It ignores
// other lines.
func Trace(printed string) []GC {
	var cycles []GC
	for _, line := range strings.Split(printed, "\n") {
		m := gcLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		numbers := make([]int, 3)
		for i := range numbers {
			if numbers[i], err = strconv.Atoi(m[i+2]); err != nil {
				numbers[i] = 0 // a goal too large for an int counts as none
			}
		}
		if numbers[2] > 1<<20 {
			numbers[2] = 0 // with GOGC=off the goal exceeds any machine's memory
		}
		cycles = append(cycles, GC{at, numbers[0], numbers[1], numbers[2], m[5] != ""})
	}
	return cycles
}

// Run is the trace of a program with a setting, such as "GOGC=100".
type Run struct {
	Setting string
	Cycles  []GC
}

// Chart draws one panel for each run. Its title states the finding.
type Chart struct {
	Name, Title string
	Runs        []Run
}

// Data returns the chart in each format that a notebook may show, by MIME type.
func (c Chart) Data() map[string]interface{} {
	return map[string]interface{}{
		"image/svg+xml": c.svg(),
		"text/csv":      c.csv(),
		"text/plain":    c.alt(),
	}
}

// Metadata returns the chart's name and title, for the report.
func (c Chart) Metadata() map[string]interface{} {
	return map[string]interface{}{
		"gccost": map[string]interface{}{"chart": c.Name, "title": c.Title},
	}
}

func (c Chart) alt() string {
	text := c.Title + "."
	for _, run := range c.Runs {
		text += fmt.Sprintf(" %s, the heap reached %d MB.", run.heading(), run.most())
	}
	return text
}

func (c Chart) csv() string {
	text := "setting,seconds,before_mb,live_mb,goal_mb,forced\n"
	for _, run := range c.Runs {
		for _, gc := range run.Cycles {
			text += fmt.Sprintf("%s,%g,%d,%d,%d,%t\n", run.Setting, gc.At, gc.Before, gc.Live, gc.Goal, gc.Forced)
		}
	}
	return text
}

// Unforced returns the number of the run's cycles that the program did not ask for.
func (r Run) Unforced() int {
	count := 0
	for _, gc := range r.Cycles {
		if !gc.Forced {
			count++
		}
	}
	return count
}

func (r Run) heading() string {
	unforced := r.Unforced()
	return fmt.Sprintf("%s (%d unforced and %d forced GC cycles)", r.Setting, unforced, len(r.Cycles)-unforced)
}

func (r Run) most() int {
	most := 0
	for _, gc := range r.Cycles {
		if gc.Before > most {
			most = gc.Before
		}
	}
	return most
}

// The colours of the page, and those of the other charts.
const (
	ink    = "var(--ink, #1f2328)"
	muted  = "var(--muted, #59636e)"
	grid   = "var(--grid, #d1d9e0)"
	paper  = "var(--paper, #ffffff)"
	orange = "#d55e00"
	blue   = "#0072b2"
)

// The layout of the drawing, in pixels.
const (
	width, left, right = 720, 60, 150
	above, panel, gap  = 64, 110, 40
	letters            = 84 // maximum length of a line of the title, in bytes
)

func (c Chart) svg() string {
	var b strings.Builder
	height := above + len(c.Runs)*(panel+gap) + 24
	seconds := 0.0
	for _, run := range c.Runs {
		for _, gc := range run.Cycles {
			seconds = math.Max(seconds, gc.At)
		}
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`style="background: %s" font-family="DejaVu Sans" font-size="13">`, width, height, width, height, paper)
	for i, line := range wrapped(c.Title) {
		text(&b, 8, float64(20+18*i), ink, "start", `font-weight="bold" font-size="14"`, line)
	}
	for i, run := range c.Runs {
		panelOf(&b, run, above+i*(panel+gap), seconds)
	}
	text(&b, left, float64(height-6), ink, "start", "", "seconds after the program's start")
	b.WriteString("</svg>")
	return b.String()
}

// wrapped breaks a title into lines.
func wrapped(title string) []string {
	lines := []string{""}
	for _, word := range strings.Fields(title) {
		last := &lines[len(lines)-1]
		if *last != "" && len(*last)+1+len(word) > letters {
			lines = append(lines, word)
		} else {
			*last = strings.TrimSpace(*last + " " + word)
		}
	}
	return lines
}

// panelOf draws one run: the heap, which falls to the live heap and grows again, and the
// goal of each cycle. All panels share the time axis.
func panelOf(b *strings.Builder, run Run, top int, seconds float64) {
	most := run.most()
	for _, gc := range run.Cycles {
		if gc.Goal > most && gc.Goal < 4*run.most() {
			most = gc.Goal
		}
	}
	x := func(s float64) float64 { return left + s/math.Max(seconds, 1e-3)*(width-left-right) }
	y := func(mb int) float64 {
		return float64(top) + panel*(1-float64(mb)/math.Max(float64(most), 1))
	}
	text(b, left, float64(top-8), ink, "start", `font-weight="bold"`, run.heading())
	for _, mb := range []int{0, most} {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="%s"/>`, left, y(mb), width-right, grid)
		text(b, left-8, y(mb)+4, ink, "end", "", strconv.Itoa(mb)+" MB")
	}
	for _, s := range []float64{0, seconds} {
		text(b, x(s), float64(top+panel+16), ink, "middle", "", fmt.Sprintf("%.2g", s))
	}
	if len(run.Cycles) == 0 {
		text(b, left+8, float64(top+panel/2), muted, "start", "", "no GC cycle")
		return
	}
	path, goals := "", ""
	for i, gc := range run.Cycles {
		to := "L"
		if i == 0 {
			to = "M"
		}
		path += fmt.Sprintf("%s%.1f %.1fL%.1f %.1f", to, x(gc.At), y(gc.Before), x(gc.At), y(gc.Live))
		if gc.Goal > 0 && gc.Goal <= most {
			goals += fmt.Sprintf("M%.1f %.1fh4", x(gc.At)-2, y(gc.Goal))
		}
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, path, orange)
	if goals != "" {
		fmt.Fprintf(b, `<path d="%s" stroke="%s" stroke-width="2.5"/>`, goals, blue)
	}
	last := run.Cycles[len(run.Cycles)-1]
	at := math.Min(math.Max(y((last.Before+last.Live)/2), float64(top+10)), float64(top+panel-24))
	text(b, width-right+8, at, ink, "start", "", "heap")
	if goals != "" {
		text(b, width-right+8, at+18, ink, "start", "", "– the cycle's goal")
	}
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func text(b *strings.Builder, x, y float64, fill, anchor, more, said string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" text-anchor="%s" %s>%s</text>`,
		x, y, fill, anchor, more, escaped.Replace(said))
}
