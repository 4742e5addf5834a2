package nottheobject

// Cases 21 to 23 were written by another hand, who knew the documents of the rules alone.

import (
	"os"
	"runtime"
)

// Case 21 (harm): a constructor registers on what another constructor has registered on.

type otherFile struct {
	file *os.File
	name string
}

func otherOpen(name string) (*otherFile, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	f := &otherFile{file, name}
	runtime.SetFinalizer(f, func(f *otherFile) { f.file.Close() })
	return f, nil
}

func otherOpenTemporary(name string) (*otherFile, error) {
	f, err := otherOpen(name)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(f, func(f *otherFile) { // want "not the object"
		f.file.Close()
		os.Remove(f.name)
	})
	return f, nil
}

// Case 22 (harm, missed at first): the objects are elements of one slice.

type otherSlot struct {
	file *os.File
	name string
}

func otherSlots(files []*os.File) []*otherSlot {
	slab := make([]otherSlot, len(files))
	slots := make([]*otherSlot, 0, len(files))
	for i, file := range files {
		slot := &slab[i]
		slot.file = file
		runtime.SetFinalizer(slot, func(s *otherSlot) { s.file.Close() }) // want "not the object"
		slots = append(slots, slot)
	}
	return slots
}

// Case 23 (harmless): the registration is on an object of its own, to which the embedded pointer leads.

type otherInner struct {
	file *os.File
	name string
}

type otherOuter struct {
	*otherInner
	offset int64
}

func newOtherOuter(file *os.File, name string) *otherOuter {
	o := &otherOuter{otherInner: &otherInner{file, name}}
	runtime.SetFinalizer(o.otherInner, func(i *otherInner) { i.file.Close() })
	return o
}
