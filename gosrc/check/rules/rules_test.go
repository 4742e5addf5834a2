package rules

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// The prices of the tests are made up.
const testPrices = `{"nanoseconds": {
	"SetFinalizer": {"8": 1000, "16": 700, "48": 500, "64": 500},
	"AddCleanup": {"8": 1600, "16": 900, "48": 650, "64": 600}
}}`

func planted(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	pricesFile = filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(pricesFile, []byte(testPrices), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPlantedCases(t *testing.T) {
	folder := planted(t)
	for _, each := range Analyzers {
		t.Run(each.Name, func(t *testing.T) { run(t, folder, each) })
	}
}

func run(t *testing.T, folder string, each *analysis.Analyzer) {
	analysistest.Run(t, folder, each, each.Name)
}
