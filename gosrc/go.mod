module gccost

go 1.18

require example.org/gccost/slab v0.0.0

replace example.org/gccost/slab => ./slab
