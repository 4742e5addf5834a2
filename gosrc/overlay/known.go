package main

import "strings"

// releases lists the releases whose runtime the edits below were written for.
var releases = []string{"1.26", "1.27"}

// A known declaration has been reviewed by the authors of the overlay. The command
// refuses one whose fingerprint is not listed.
type known struct {
	file, name   string
	fingerprints []string
	edits        []edit
}

// hintEdits are the additional edits of the hint variants, by declaration. They add a
// field.
var hintEdits = map[string][]edit{
	"mspan":        {{"specials *special", "specialHint *special /* the special before the last change of the list, or nil */; specials *special"}},
	"(mspan).init": {{"span.specials = nil", "span.specials, span.specialHint = nil, nil"}},
}

// indexEdits are the additional edits of the index variants. They add a field and
// initialize the allocators of the indexes.
var indexEdits = map[string][]edit{
	"mspan": {{"specials *special", "specialIndex *specialIndex /* finds places in specials, or nil */; specials *special"}},
	"(mheap).init": {{
		"lockInit(&h.speciallock, lockRankMheapSpecial)",
		"lockInit(&h.speciallock, lockRankMheapSpecial); initSpecialIndexes()",
	}},
	"(mspan).init": {{"span.specials = nil", "span.specials, span.specialIndex = nil, nil"}},
}

// plusEdits are the edits of the plus variants, in addition to indexEdits. They call
// functions of added/mspecialplus_on.go.txt.
var plusEdits = map[string][]edit{
	"AddCleanup": {
		{
			"if size := unsafe.Sizeof(arg); size < maxTinySize && argType.PtrBytes == 0 {",
			"direct := isDirectCleanupArg(abi.TypeFor[S]()); if size := unsafe.Sizeof(arg); direct {} else if size < maxTinySize && argType.PtrBytes == 0 {",
		},
		{
			"*argv = arg",
			"argp := unsafe.Pointer(argv); var call func(*funcval, unsafe.Pointer); " +
				"if direct { argp, call = *(*unsafe.Pointer)(unsafe.Pointer(&arg)), callDirectCleanup } else { *argv, call = arg, callCleanup[S] }",
		},
		{"call: callCleanup[S],", "call: call,"},
		{"arg: unsafe.Pointer(argv),", "arg: argp,"},
	},
	"special":       {{"kind byte", "kind byte; isRoot bool"}},
	"mspan":         {{"userArenaChunkFree addrRange", "specialRoots uint32; userArenaChunkFree addrRange"}},
	"(mspan).init":  {{"span.needzero = 0", "span.needzero, span.specialRoots = 0, 0"}},
	"markrootSpans": {{"sp := s.specials", "sp := s.specialsWithRoots()"}},
}

// requeueEdits are the edits of the variant requeue. Since Go 1.26 a goroutine that was
// preempted to stop the world stays on its P. With these edits it goes to the global
// queue, as in Go 1.25.
var requeueEdits = map[string][]edit{
	"goschedImpl": {{"if preempted && sched.gcwaiting.Load() {", "if false {"}},
}

// An edit replaces the one place in a declaration that has the tokens of find. It adds
// no lines, so that line numbers in traces match the user's source.
type edit struct{ find, put string }

// removal is the edits of the functions that search all cleanups of an object for one.
var removal = []edit{
	{"iter, exists", "before, exists"},
	{"s := *iter", "s := *span.specialLink(before)"},
	{"*iter = s.next", "span.unlinkSpecial(before)"},
	{"iter = &s.next", "before = s"},
}

// declarations lists the declarations of package runtime that use lists of specials, and
// goschedImpl, which only the variant requeue edits. Those with edits search, link or unlink.
// The others only read lists, or call those with edits. The edits pass on the record before a
// place where the runtime passes on its link, and linkSpecial and unlinkSpecial make every
// change of a list.
var declarations = []known{
	{file: "heapdump.go", name: "dumproots", fingerprints: []string{"3ccd64a9909219c3"}},
	{file: "heapdump.go", name: "dumpmemprof", fingerprints: []string{"4c0451ff7f3b58c5"}},
	{file: "mcheckmark.go", name: "checkFinalizersAndCleanups", fingerprints: []string{"0f2ec7368c95bdd3"}},
	{file: "mcheckmark.go", name: "forEachSpecial", fingerprints: []string{"0448403505c9dcf9"}},
	{file: "mcleanup.go", name: "AddCleanup", fingerprints: []string{"4539f5a475bc019e"}},
	{
		file: "mcleanup.go", name: "(Cleanup).Stop", fingerprints: []string{"d25e4904f2c9dea0"},
		edits: removal,
	},
	{file: "mgc.go", name: "gcTestIsReachable", fingerprints: []string{"e61a45b38881b63c"}},
	{file: "mgcmark.go", name: "markrootSpans", fingerprints: []string{"5ca7e8ef479f60e0"}},
	{file: "mgcmark.go", name: "gcScanFinalizer", fingerprints: []string{"560d72768f793fce"}},
	{file: "mgcsweep.go", name: "(sweepLocked).sweep", fingerprints: []string{"6a346a7111089e65"}},
	{file: "mheap.go", name: "mspan", fingerprints: []string{"a4f4188f16558323"}},
	{file: "mheap.go", name: "(mheap).init", fingerprints: []string{"939d63742a4d36df"}},
	{file: "mheap.go", name: "(mspan).init", fingerprints: []string{"823fbc17b15cd9dc"}},
	{file: "mheap.go", name: "special", fingerprints: []string{"2e4b555072149ca1"}},
	{
		file: "mheap.go", name: "addspecial", fingerprints: []string{"8263ddc0890672f3"},
		edits: []edit{{"iter, exists", "before, exists"}, {"s.next = *iter\n*iter = s", "span.linkSpecial(before, s)"}},
	},
	{
		file: "mheap.go", name: "removespecial", fingerprints: []string{"c4985228503e9a11"},
		edits: []edit{{"iter, exists", "before, exists"}, {"s := *iter\n*iter = s.next", "s := span.unlinkSpecial(before)"}},
	},
	{
		file: "mheap.go", name: "(mspan).specialFindSplicePoint", fingerprints: []string{"cfc2f70880b767ed"},
		edits: []edit{
			{"(**special, bool)", "(*special, bool)"},
			{"iter := &span.specials", "before := span.specialBefore(offset, kind); s := *span.specialLink(before)"},
			{"s := *iter", ""},
			{"iter = &s.next", "before, s = s, s.next"},
			{"return iter, found", "return before, found"},
		},
	},
	{
		file: "mheap.go", name: "getCleanupContext", fingerprints: []string{"a43fd6d54c9ea536"},
		edits: removal,
	},
	{
		file: "mheap.go", name: "clearCleanupContext", fingerprints: []string{"7bfb033da6a6125e"},
		edits: removal,
	},
	{file: "mheap.go", name: "inTinyBlock", fingerprints: []string{"76e292baccbae668"}},
	{
		file: "mheap.go", name: "getWeakHandle", fingerprints: []string{"c01fffce98b35251"},
		edits: []edit{{"iter, exists", "before, exists"}, {"*iter", "*span.specialLink(before)"}},
	},
	{
		file: "mheap.go", name: "specialsIter", fingerprints: []string{"a1880d6b64d3e4a1"},
		edits: []edit{{"pprev **special\ns *special", "span *mspan; before, s *special"}},
	},
	{
		file: "mheap.go", name: "newSpecialsIter", fingerprints: []string{"fabd20c48bd4d942"},
		edits: []edit{{"{&span.specials, span.specials}", "{span, nil, span.specials}"}},
	},
	{file: "mheap.go", name: "(specialsIter).valid", fingerprints: []string{"9c72b80337c92cb7"}},
	{
		file: "mheap.go", name: "(specialsIter).next", fingerprints: []string{"e90bcb6f229eb6cc"},
		edits: []edit{{"i.pprev = &i.s.next\ni.s = *i.pprev", "i.before, i.s = i.s, i.s.next"}},
	},
	{
		file: "mheap.go", name: "(specialsIter).unlinkAndNext", fingerprints: []string{"4b822c09efc2b864"},
		edits: []edit{{"*i.pprev = i.s", "i.span.unlinkSpecial(i.before)"}},
	},
	{file: "mheap.go", name: "freeSpecial", fingerprints: []string{"8a5c1c142b352d04", "01746cd89efa47a5"}},
	{
		file: "pinner.go", name: "(mspan).incPinCounter", fingerprints: []string{"911a90c31e38e6fb"},
		edits: []edit{
			{"ref, exists", "before, exists"},
			{"rec.special.next = *ref\n*ref = (*special)(unsafe.Pointer(rec))", "span.linkSpecial(before, &rec.special)"},
			{"unsafe.Pointer(*ref)", "unsafe.Pointer(*span.specialLink(before))"},
		},
	},
	{
		file: "pinner.go", name: "(mspan).decPinCounter", fingerprints: []string{"87599c1d8d99401b"},
		edits: []edit{
			{"ref, exists", "before, exists"},
			{"unsafe.Pointer(*ref)", "unsafe.Pointer(*span.specialLink(before))"},
			{"*ref = counter.special.next", "span.unlinkSpecial(before)"},
		},
	},
	{
		file: "pinner.go", name: "pinnerGetPinCounter", fingerprints: []string{"0907f20126b8e2be"},
		edits: []edit{{"t, exists", "before, exists"}, {"*t", "*span.specialLink(before)"}},
	},
	{file: "proc.go", name: "goschedImpl", fingerprints: []string{"72660adbdb0ab29a"}},
	{
		file: "synctest.go", name: "getOrSetBubbleSpecial", fingerprints: []string{"88a5cf34de8274f0"},
		edits: []edit{
			{"iter, exists", "before, exists"},
			{"(unsafe.Pointer)(*iter)", "unsafe.Pointer(*span.specialLink(before))"},
			{"s.special.next = *iter\n*iter = (*special)(unsafe.Pointer(s))", "span.linkSpecial(before, &s.special)"},
		},
	},
}

// isKnown reports whether a declaration of that name is in the table.
func isKnown(name string) bool {
	for _, declaration := range declarations {
		if declaration.name == name {
			return true
		}
	}
	return false
}

func contains(list []string, wanted string) bool {
	for _, one := range list {
		if one == wanted {
			return true
		}
	}
	return false
}

// unknownSource is the hint for source that is not known.
var unknownSource = "set -goroot to an unedited Go " + strings.Join(releases, " or ") +
	", or follow " + `"Adding a release" in README.md`
