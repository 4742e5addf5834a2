package sqlite

import (
	"fmt"
	"testing"

	"example.org/gccost/libraries/loop"
)

func named(i int) string { return fmt.Sprintf("file%d", i%(rows/names)) }

func step(b *testing.B, close bool) {
	conn, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	loop.Run(b, func(i int) {
		if _, err := Step(conn, named(i), close); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkSqliteDropped leaves each statement to its finalizer.
func BenchmarkSqliteDropped(b *testing.B) { step(b, false) }

// BenchmarkSqliteClosed closes each statement.
func BenchmarkSqliteClosed(b *testing.B) { step(b, true) }

// BenchmarkSqliteQuery does what most programs do: package database/sql closes the
// statement.
func BenchmarkSqliteQuery(b *testing.B) {
	db, err := OpenDB()
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	loop.Run(b, func(i int) {
		if _, err := Query(db, named(i)); err != nil {
			b.Fatal(err)
		}
	})
}

// TestAllWaysFindTheSame tests that every way finds the same rows.
func TestAllWaysFindTheSame(t *testing.T) {
	conn, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	db, err := OpenDB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := 0; i < rows/names; i++ {
		dropped, err := Step(conn, named(i), false)
		if err != nil {
			t.Fatal(err)
		}
		closed, err := Step(conn, named(i), true)
		if err != nil {
			t.Fatal(err)
		}
		queried, err := Query(db, named(i))
		if err != nil {
			t.Fatal(err)
		}
		if dropped == 0 || dropped != closed || dropped != queried {
			t.Errorf("%s: the three ways find %d, %d and %d bytes, want the same and not 0", named(i), dropped, closed, queried)
		}
	}
}
