module gccost/kernel

// What the Go kernel of JupyterLab is built from: see gccost/showing/gokernel.py.

go 1.26.0

tool github.com/gopherdata/gophernotes

require github.com/gopherdata/gophernotes v0.7.5 // indirect

// Its own versions panic on what Go has had since generics.
require golang.org/x/tools v0.52.0 // indirect

require (
	github.com/cosmos72/gomacro v0.0.0-20220530072503-c719ab5c40fc // indirect
	github.com/go-zeromq/goczmq/v4 v4.2.2 // indirect
	github.com/go-zeromq/zmq4 v0.14.1 // indirect
	github.com/gofrs/uuid v4.2.0+incompatible // indirect
	github.com/mattn/go-runewidth v0.0.13 // indirect
	github.com/peterh/liner v1.2.1 // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
