package main

import "fmt"

// Lines are at most as wide as most terminals.
const (
	caseColumns   = "%-18s %-10s"
	targetColumns = "%-45s %-13s %-23s %s\n"
)

// table is how the rounds of a benchmark are printed.
type table struct {
	// of is the title of the first column, the results' case.
	of      string
	columns []string
	// explain is whether a round's writes are listed.
	explain func(result) bool
}

// tables are those of the benchmarks that consist of rounds.
var tables = map[string]table{
	"bind": {
		of: "WORKLOAD", columns: []string{"N", "BOUND", "PER SEC", "P50 ms", "P99 ms", "MAX ms", "WRITES", "CPU ms", "MiB"},
		explain: func(r result) bool { return r.Writes != writesPerBind },
	},
	"provision": {
		of: "WORKLOAD", columns: []string{"N", "BOUND", "PER SEC", "WRITES", "OTHERS", "CPU ms", "DELETED/S", "LEFT"},
		explain: func(r result) bool { return r.Writes != writesPerClaim },
	},
	"csi":   {of: "DRIVERS", columns: []string{"N", "BOUND", "PER SEC", "P50 ms", "P99 ms", "REQUESTS", "CPU ms", "MiB", "DELETED/S", "LEFT"}},
	"local": {of: "LAYOUT", columns: []string{"N", "BOUND", "SECONDS", "P50 ms", "P99 ms", "DELETED/S", "LEFT"}},
	"attach": {
		of: "PHASE", columns: []string{"N", "SECONDS", "PER SEC", "WRITES", "OTHERS", "CPU ms"},
		explain: func(r result) bool { return r.Program != bareName },
	},
	"node": {of: "PODS, PHASE", columns: []string{"N", "VOLUMES", "SECONDS", "P50 ms", "P99 ms", "REQUESTS", "CPU ms"}},
}

var columns = map[string]struct {
	width int
	value func(result) string
}{
	"N":         {5, func(r result) string { return fmt.Sprint(r.N) }},
	"BOUND":     {5, func(r result) string { return fmt.Sprint(r.Done) }},
	"VOLUMES":   {7, func(r result) string { return fmt.Sprint(r.Volumes) }},
	"SECONDS":   {7, func(r result) string { return decimals(3, r.Seconds) }},
	"PER SEC":   {7, func(r result) string { return decimals(0, r.PerSecond) }},
	"P50 ms":    {6, func(r result) string { return decimals(0, r.Latency.P50) }},
	"P99 ms":    {6, func(r result) string { return decimals(0, r.Latency.P99) }},
	"MAX ms":    {6, func(r result) string { return decimals(0, r.Latency.Max) }},
	"WRITES":    {6, func(r result) string { return decimals(2, r.Writes) }},
	"OTHERS":    {6, func(r result) string { return decimals(2, r.Others) }},
	"REQUESTS":  {8, func(r result) string { return decimals(1, float64(r.Requests.total())/float64(r.N)) }},
	"CPU ms":    {6, func(r result) string { return decimals(2, r.CPUEach) }},
	"MiB":       {4, func(r result) string { return decimals(0, r.PeakMiB) }},
	"DELETED/S": {9, func(r result) string { return decimals(0, r.DeletedPerSecond) }},
	"LEFT":      {5, func(r result) string { return fmt.Sprint(r.Left) }},
}

func decimals[T ~float64](n int, value T) string { return fmt.Sprintf("%.*f", n, float64(value)) }

// begin prints the head of a benchmark's table.
func (r *report) begin(benchmark string) {
	r.table = tables[benchmark]
	fmt.Fprintf(r.out, "\n"+caseColumns, r.table.of, "PROGRAM")
	for _, title := range r.table.columns {
		fmt.Fprintf(r.out, " %*s", columns[title].width, title)
	}
	fmt.Fprintln(r.out)
}
