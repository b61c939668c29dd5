package controllers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// tablesVariable names the file that `make tables-upstream` writes, with a row of
// upstream's tables in each line; unset, there are no such specs.
const tablesVariable = "STOWAGE_UPSTREAM_TABLES"

// expectedFile has the rows that don't hold, each with its reason.
const expectedFile = "testdata/upstream.txt"

// tableRow is what hack/upstream/tables records of a row.
type tableRow struct {
	key                     string
	Test, Name              string
	Call, Compared, Problem string
	Classes                 []*storagev1.StorageClass
	Pods                    []*corev1.Pod
	Volumes, WantVolumes    []*corev1.PersistentVolume
	Claims, WantClaims      []*corev1.PersistentVolumeClaim
	WantEvents              []string
	// What the row's own code changes, after the first call.
	NewVolumes              []*corev1.PersistentVolume
	NewClaims               []*corev1.PersistentVolumeClaim
	GoneVolumes, GoneClaims []string
}

// Upstream's tables of PersistentVolumes are played on a real API server: the objects of
// a row are created, one reconciler is called for the object for which the row calls
// upstream's controller, and what became of the objects is compared. Where it lies in the
// hands of another reconciler here, the whole cluster comes to rest, and is compared again.
var _ = Describe("Upstream's tables", func() {
	path := os.Getenv(tablesVariable)
	if path == "" {
		return
	}
	rows, expected := readRows(path), readExpected()
	known := map[string]bool{}
	for _, row := range rows {
		known[row.key] = true
		It(row.key+": "+row.Name, func() {
			problems := row.play()
			reason, listed := expected[row.key]
			switch {
			case listed && len(problems) == 0:
				Fail("it holds: " + expectedFile + " says that it doesn't, because " + reason)
			case listed:
				Skip(reason + " (" + strings.Join(problems, "; ") + ")")
			case len(problems) > 0:
				Fail(strings.Join(problems, "\n"))
			}
		})
	}
	It("has every row that the list of expected differences names", func() {
		for key := range expected {
			Expect(known).To(HaveKey(key))
		}
	})
})

const gate = "features.VolumeAttributesClass="

// keyOf is the test and the number of a row, as in TestSync/1-1.
func keyOf(row *tableRow) string {
	name := row.Name
	if rest, gated := strings.CutPrefix(name, gate); gated {
		_, name, _ = strings.Cut(rest, " ")
	}
	if number, _, numbered := strings.Cut(name, " "); numbered && strings.Contains(number, "-") {
		name = number
	}
	return row.Test + "/" + strings.ReplaceAll(name, " ", "-")
}

// readRows leaves out what upstream plays a second time with a feature gate off that the
// API server has on for good. A second row of one number gets a key of its own.
func readRows(path string) []*tableRow {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	var rows []*tableRow
	count := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		row := &tableRow{}
		if err := json.Unmarshal(lines.Bytes(), row); err != nil {
			panic(err)
		}
		row.key = keyOf(row)
		again := count[row.key] > 0
		count[row.key]++
		switch {
		case again && strings.HasPrefix(row.Name, gate+"false"):
			continue
		case again:
			row.key = fmt.Sprintf("%s#%d", row.key, count[row.key])
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
	return rows
}

// readExpected reads a line for each row that doesn't hold: its key, spaces, the reason.
// Lines that begin with # are comments.
func readExpected() map[string]string {
	content, err := os.ReadFile(expectedFile)
	if err != nil {
		panic(err)
	}
	expected := map[string]string{}
	for line := range strings.Lines(string(content)) {
		key, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if reason = strings.TrimSpace(reason); reason == "" || expected[key] != "" {
			panic(expectedFile + ": " + key + " has no reason, or two")
		}
		expected[key] = reason
	}
	return expected
}
