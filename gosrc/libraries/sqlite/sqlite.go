// Package sqlite prepares and steps statements of github.com/mattn/go-sqlite3, which
// gives each statement a finalizer.
package sqlite

/*
// The library's own function, which is found only when the program is linked.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
enum { SQLITE_CONFIG_LOOKASIDE = 13 };
int sqlite3_config(int option, ...);
static int without_lookaside(void) { return sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); }
*/
import "C"

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	sqlite3 "github.com/mattn/go-sqlite3"
)

const (
	rows  = 10_000
	names = 100 // rows with the same name
	query = "SELECT id, size FROM files WHERE name = ? AND size > ? LIMIT 10"
)

// Fill creates the table of files through exec.
func Fill(exec func(query string) error) error {
	return exec(`
		CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
		CREATE INDEX named ON files (name, size);
		WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 10000)
		INSERT INTO files SELECT n, 'file' || (n / 100), n * 7919 % 100000 FROM counted;`)
}

// Open returns a connection to a new in-memory database with the table.
func Open() (*sqlite3.SQLiteConn, error) {
	opened, err := new(sqlite3.SQLiteDriver).Open(":memory:")
	if err != nil {
		return nil, err
	}
	conn := opened.(*sqlite3.SQLiteConn)
	return conn, Fill(func(query string) error {
		_, err := conn.Exec(query, nil)
		return err
	})
}

// WithoutLookaside makes SQLite take the memory of each statement from malloc. By default a
// connection has 48 kB of its own, and gives a new statement the memory of a closed one. It
// returns an error if the process opened a database before.
var WithoutLookaside = sync.OnceValue(func() error {
	if result := C.without_lookaside(); result != 0 {
		return fmt.Errorf("sqlite3_config returned %d", result)
	}
	return nil
})

// OpenDB does the same through package database/sql, with one connection.
func OpenDB() (*sql.DB, error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, Fill(func(query string) error {
		_, err := db.Exec(query)
		return err
	})
}

// Step prepares a statement and steps it. It returns the statement, which its finalizer
// closes if nothing else does, and the sum of the sizes in its rows.
func Step(conn *sqlite3.SQLiteConn, name string) (statement driver.Stmt, size int64, err error) {
	if statement, err = conn.Prepare(query); err != nil {
		return nil, 0, err
	}
	found, err := statement.Query([]driver.Value{name, int64(50_000)})
	if err != nil {
		return nil, 0, err
	}
	row := make([]driver.Value, 2)
	for err = found.Next(row); err == nil; err = found.Next(row) {
		size += row[1].(int64)
	}
	if !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return statement, size, found.Close()
}

// Query does the same through package database/sql, which closes the statement.
func Query(db *sql.DB, name string) (size int64, err error) {
	found, err := db.Query(query, name, 50_000)
	if err != nil {
		return 0, err
	}
	defer found.Close()
	for found.Next() {
		var id, bytes int64
		if err := found.Scan(&id, &bytes); err != nil {
			return 0, err
		}
		size += bytes
	}
	return size, found.Err()
}
