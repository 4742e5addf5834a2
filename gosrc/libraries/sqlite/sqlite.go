// Package sqlite prepares and steps statements of github.com/mattn/go-sqlite3, which
// gives each statement a finalizer.
package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

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

// Step prepares a statement, steps it and returns the sum of the sizes in its rows. If
// close is set, it closes the statement; otherwise the statement's finalizer does.
func Step(conn *sqlite3.SQLiteConn, name string, close bool) (size int64, err error) {
	statement, err := conn.Prepare(query)
	if err != nil {
		return 0, err
	}
	found, err := statement.Query([]driver.Value{name, int64(50_000)})
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, 2)
	for err = found.Next(row); err == nil; err = found.Next(row) {
		size += row[1].(int64)
	}
	if !errors.Is(err, io.EOF) {
		return 0, err
	}
	if err := found.Close(); err != nil || !close {
		return size, err
	}
	return size, statement.Close()
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
