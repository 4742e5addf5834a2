//go:build go1.24

package watch

import (
	"reflect"
	"testing"
)

func TestCleanedObjectIsFreedInOneCycle(t *testing.T) {
	heap, ran := watched(t, func() { Cleaned("it") })
	if heap != [4]int{1, 0, 0, 0} || !reflect.DeepEqual(ran, []string{"the cleanup of it"}) {
		t.Error(heap, ran)
	}
}
