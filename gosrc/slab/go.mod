module example.org/gccost/slab

go 1.20
