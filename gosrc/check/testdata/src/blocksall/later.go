package blocksall

// Cases 11 to 13 were written before the rules had seen them.

import (
	"net"
	"runtime"
	"sync"
)

// Case 11 (harm): a helper reads a channel until it is closed.

func newDrainer(results chan int) *object {
	o := new(object)
	runtime.AddCleanup(o, drain, results) // want "one stops all"
	return o
}

func drain(results chan int) {
	for range results {
		left.Add(-1)
	}
}

// Case 12 (harmless): it does not wait for the mutex.

func newTrying(mu *sync.Mutex) *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) {
		if mu.TryLock() {
			o.open = false
			mu.Unlock()
		}
	})
	return o
}

// Case 13 (harm): it says good-bye on the network.

type connection struct{ conn net.Conn }

func newConnection(conn net.Conn) *connection {
	c := &connection{conn: conn}
	runtime.SetFinalizer(c, func(c *connection) { // want "one stops all"
		c.conn.Write([]byte("bye"))
		c.conn.Close()
	})
	return c
}
