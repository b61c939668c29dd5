package localvolume

import (
	"errors"
	"strings"
	"testing"
)

const gi = int64(1) << 30

func TestRoomOnADisk(t *testing.T) {
	tests := map[string]struct {
		room        room
		wanted, has int64
		problem     string
	}{
		"an empty disk":                          {room{total: 10 * gi, free: 10 * gi}, 10 * gi, 0, ""},
		"one byte too much":                      {room{total: 10 * gi, free: 10 * gi}, 10*gi + 1, 0, "10.0Gi is asked for, and 10Gi is left of 10Gi"},
		"what others were given counts":          {room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 7 * gi, 0, "7Gi is asked for, and 6Gi is left of 10Gi (0 reserved, 4Gi given to other volumes)"},
		"and fits exactly":                       {room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 6 * gi, 0, ""},
		"what is reserved counts":                {room{total: 10 * gi, free: 10 * gi, reserved: 5 * gi}, 6 * gi, 0, "5Gi is left of 10Gi (5Gi reserved"},
		"more given than there is":               {room{total: 10 * gi, free: 10 * gi, promised: promised{given: 20 * gi}}, 1, 0, "0 is left"},
		"other files fill the disk":              {room{total: 10 * gi, free: gi}, 2 * gi, 0, "only 1Gi of the disk is free and not kept for other volumes"},
		"growing asks for the difference only":   {room{total: 10 * gi, free: gi}, 5 * gi, 4 * gi, ""},
		"other files and what others may write":  {room{total: 10 * gi, free: 6 * gi, promised: promised{given: 5 * gi, unwritten: 4 * gi}}, 3 * gi, 0, "only 2Gi of the disk is free"},
		"what others wrote isn't kept again":     {room{total: 10 * gi, free: 5 * gi, promised: promised{given: 5 * gi}}, 5 * gi, 0, ""},
		"growing beyond the disk":                {room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 7 * gi, 5 * gi, "6Gi is left"},
		"growing when other files fill the disk": {room{total: 10 * gi, free: gi}, 6 * gi, 4 * gi, "2Gi is asked for"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.room.check(test.wanted, test.has)
			if test.problem == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if test.problem != "" && (!errors.Is(err, errExhausted) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want one that says %q", err, test.problem)
			}
		})
	}
}

func TestQuantitiesAreWrittenAsUsersDo(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1: "1", 1 << 20: "1Mi", 500 << 20: "500Mi", gi: "1Gi", 3 * gi / 2: "1.5Gi", 10*gi + 1: "10.0Gi", 1<<20 + 1: "1.0Mi",
	} {
		if got := quantity(bytes); got != want {
			t.Errorf("%d is written %s, want %s", bytes, got, want)
		}
	}
}
