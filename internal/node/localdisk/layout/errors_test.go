package layout

import "testing"

func TestQuantitiesAreWrittenAsUsersDo(t *testing.T) {
	const gi = int64(1) << 30
	for bytes, want := range map[int64]string{
		0: "0", 1: "1", 1 << 20: "1Mi", 500 << 20: "500Mi", gi: "1Gi", 3 * gi / 2: "1.5Gi", 10*gi + 1: "10.0Gi", 1<<20 + 1: "1.0Mi",
	} {
		if got := Quantity(bytes); got != want {
			t.Errorf("%d is written %s, want %s", bytes, got, want)
		}
	}
}
