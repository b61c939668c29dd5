package main

import (
	"slices"
	"testing"
)

// edges makes a graph of n files.
func edges(n int, uses ...[2]int) graph {
	g := make(graph, n)
	for i := range g {
		g[i] = make([]bool, n)
	}
	for _, use := range uses {
		g[use[0]][use[1]] = true
	}
	return g
}

func TestCyclesAreUsesThatNoOrderAvoids(t *testing.T) {
	for name, test := range map[string]struct {
		uses graph
		want int
	}{
		"no uses":                        {edges(3), 0},
		"a chain in any order of names":  {edges(4, [2]int{3, 1}, [2]int{1, 2}, [2]int{2, 0}, [2]int{3, 0}), 0},
		"one use back":                   {edges(2, [2]int{0, 1}, [2]int{1, 0}), 0},
		"two pairs that use one another": {edges(4, [2]int{0, 1}, [2]int{1, 0}, [2]int{2, 3}, [2]int{3, 2}), 50},
		"two rings of three":             {edges(6, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0}, [2]int{3, 4}, [2]int{4, 5}, [2]int{5, 3}), 34},
	} {
		if got := cycles(test.uses); got != test.want {
			t.Errorf("%s: %d percent run back up, want %d", name, got, test.want)
		}
	}
}

func TestAnOrderHasEachFileOnce(t *testing.T) {
	order := edges(5, [2]int{0, 1}, [2]int{1, 0}, [2]int{4, 2}, [2]int{2, 3}).order()
	slices.Sort(order)
	if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
		t.Errorf("got %v", order)
	}
}

func TestTheListOnlyShrinks(t *testing.T) {
	of := subject{"package-files", "internal/x"}
	for name, test := range map[string]struct {
		number, listed int
		want           []string
	}{
		"within the limit":         {15, 0, nil},
		"beyond it":                {16, 0, []string{"package-files of internal/x are 16, limit 15"}},
		"beyond it as listed":      {16, 16, nil},
		"less than listed":         {16, 17, nil},
		"more than listed":         {17, 16, []string{"package-files of internal/x grew from 16 to 17, limit 15"}},
		"listed, and within":       {15, 16, []string{"package-files of internal/x are within the limit: remove the line"}},
		"listed, and not measured": {0, 16, []string{"package-files of internal/x: nothing has this name: remove the line"}},
	} {
		numbers, known := map[subject]int{}, map[subject]int{}
		if test.number != 0 {
			numbers[of] = test.number
		}
		if test.listed != 0 {
			known[of] = test.listed
		}
		if got := compare(numbers, known); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestThePackageMeasuresItself(t *testing.T) {
	numbers, err := measureAll(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []subject{{"package-files", "hack/measures"}, {"cycles", "hack/measures"}} {
		if number, measured := numbers[of]; !measured || number > 5 {
			t.Errorf("%v is %d (measured: %t)", of, number, measured)
		}
	}
}
