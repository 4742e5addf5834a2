package main

import "go/token"

// at is a node of no length.
type at struct{ pos token.Pos }

func (n at) Pos() token.Pos { return n.pos }
func (n at) End() token.Pos { return n.pos }
