package sqlite

import (
	"database/sql/driver"
	"fmt"
	"testing"

	"example.org/gccost/libraries/loop"
)

func named(i int) string { return fmt.Sprintf("file%d", i%(rows/names)) }

// step closes all statements whenever `waiting` are open, or, if it is 0, none.
func step(b *testing.B, waiting int) {
	conn, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var open []driver.Stmt
	loop.Run(b, func(i int) {
		statement, _, err := Step(conn, named(i))
		if err != nil {
			b.Fatal(err)
		}
		if waiting > 0 {
			open = append(open, statement)
		}
		if len(open) < waiting {
			return
		}
		for i, statement := range open {
			if err := statement.Close(); err != nil {
				b.Fatal(err)
			}
			open[i] = nil
		}
		open = open[:0]
	})
}

func plain(b *testing.B, waiting int) {
	if err := WithoutLookaside(); err != nil {
		b.Skip("run it in a process of its own: ", err)
	}
	step(b, waiting)
}

// BenchmarkSqliteDropped leaves each statement to its finalizer.
func BenchmarkSqliteDropped(b *testing.B) { step(b, 0) }

// BenchmarkSqliteClosed closes each statement.
func BenchmarkSqliteClosed(b *testing.B) { step(b, 1) }

// BenchmarkSqliteLateClosed closes statements as late as a finalizer would, but explicitly.
func BenchmarkSqliteLateClosed(b *testing.B) {
	for _, waiting := range []int{30, 300, 3000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) { step(b, waiting) })
	}
}

// BenchmarkSqlitePlainDropped leaves each statement to its finalizer, and all of its memory
// to malloc.
func BenchmarkSqlitePlainDropped(b *testing.B) { plain(b, 0) }

// BenchmarkSqlitePlainClosed closes each statement, and leaves all of its memory to malloc.
func BenchmarkSqlitePlainClosed(b *testing.B) { plain(b, 1) }

// BenchmarkSqliteQuery does what most programs do: package database/sql closes the
// statement.
func BenchmarkSqliteQuery(b *testing.B) {
	db, err := OpenDB()
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	loop.Run(b, func(i int) {
		if _, err := Query(db, named(i)); err != nil {
			b.Fatal(err)
		}
	})
}

// TestAllWaysFindTheSame tests that every way finds the same rows.
func TestAllWaysFindTheSame(t *testing.T) {
	conn, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	db, err := OpenDB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := 0; i < rows/names; i++ {
		_, dropped, err := Step(conn, named(i))
		if err != nil {
			t.Fatal(err)
		}
		statement, closed, err := Step(conn, named(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := statement.Close(); err != nil {
			t.Fatal(err)
		}
		queried, err := Query(db, named(i))
		if err != nil {
			t.Fatal(err)
		}
		if dropped == 0 || dropped != closed || dropped != queried {
			t.Errorf("%s: the three ways find %d, %d and %d bytes, want the same and not 0", named(i), dropped, closed, queried)
		}
	}
}
