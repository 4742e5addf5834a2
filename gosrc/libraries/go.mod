module example.org/gccost/libraries

go 1.24

require (
	example.org/gccost/slab v0.0.0
	gccost v0.0.0
	github.com/DataDog/zstd v1.5.7
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/smacker/go-tree-sitter v0.0.0-20240827094217-dd81d9e9be82
)

replace (
	example.org/gccost/slab => ../slab
	gccost => ../
)
