module gccost

go 1.18
