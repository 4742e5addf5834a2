package neverruns

// Cases 15 to 17 were written by another hand, who knew the documents of the rules alone.

import (
	"os"
	"runtime"
	"sync"
	"weak"
)

// Case 15 (harm): the argument of the cleanup is a method value of the object itself.

type otherWatcher struct {
	file *os.File
	once sync.Once
}

func newOtherWatcher(file *os.File) *otherWatcher {
	w := &otherWatcher{file: file}
	runtime.AddCleanup(w, func(stop func() error) { _ = stop() }, w.Close) // want "never runs"
	return w
}

func (w *otherWatcher) Close() (err error) {
	w.once.Do(func() { err = w.file.Close() })
	return err
}

// Case 16 (harm): a part that a helper makes leads back to the object with the finalizer.

type otherConn struct {
	file  *os.File
	cache *otherCache
}

type otherCache struct {
	conn  *otherConn
	names map[string]int
}

func newOtherCache(conn *otherConn) *otherCache {
	return &otherCache{conn: conn, names: map[string]int{}}
}

func newOtherConn(file *os.File) *otherConn {
	c := &otherConn{file: file}
	c.cache = newOtherCache(c)
	runtime.SetFinalizer(c, func(c *otherConn) { c.file.Close() }) // want "never runs"
	return c
}

// Case 17 (harmless): the argument leads to the object only by a weak pointer.

type otherView struct {
	state *otherState
	title string
}

type otherState struct {
	owner weak.Pointer[otherView]
	file  *os.File
}

func (s *otherState) close() {
	s.file.Close()
}

func newOtherView(file *os.File, title string) *otherView {
	v := &otherView{title: title}
	v.state = &otherState{owner: weak.Make(v), file: file}
	runtime.AddCleanup(v, (*otherState).close, v.state)
	return v
}
