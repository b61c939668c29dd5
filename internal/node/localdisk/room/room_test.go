package room

import (
	"errors"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const gi = int64(1) << 30

func TestRoomOnADisk(t *testing.T) {
	tests := map[string]struct {
		Room        Room
		wanted, has int64
		problem     string
	}{
		"an empty disk":                          {Room{total: 10 * gi, free: 10 * gi}, 10 * gi, 0, ""},
		"one byte too much":                      {Room{total: 10 * gi, free: 10 * gi}, 10*gi + 1, 0, "10.0Gi is asked for, and the whole disk has 10Gi for volumes (10Gi in all, 0 reserved)"},
		"what others were given counts":          {Room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 7 * gi, 0, "7Gi is asked for, and other volumes leave less of 10Gi (10Gi in all, 0 reserved)"},
		"and fits exactly":                       {Room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 6 * gi, 0, ""},
		"what is reserved counts":                {Room{total: 10 * gi, free: 10 * gi, reserved: 5 * gi}, 6 * gi, 0, "the whole disk has 5Gi for volumes (10Gi in all, 5Gi reserved)"},
		"more given than there is":               {Room{total: 10 * gi, free: 10 * gi, promised: promised{given: 20 * gi}}, 1, 0, "1 is asked for, and other volumes leave less of 10Gi"},
		"other files fill the disk":              {Room{total: 10 * gi, free: gi}, 2 * gi, 0, "2Gi is asked for, and less of 10Gi is free and not kept for other volumes"},
		"growing asks for the difference only":   {Room{total: 10 * gi, free: gi}, 5 * gi, 4 * gi, ""},
		"other files and what others may write":  {Room{total: 10 * gi, free: 6 * gi, promised: promised{given: 5 * gi, unwritten: 4 * gi}}, 3 * gi, 0, "3Gi is asked for, and less of 10Gi is free"},
		"what others wrote isn't kept again":     {Room{total: 10 * gi, free: 5 * gi, promised: promised{given: 5 * gi}}, 5 * gi, 0, ""},
		"growing beyond the disk":                {Room{total: 10 * gi, free: 10 * gi, promised: promised{given: 4 * gi}}, 7 * gi, 5 * gi, "7Gi is asked for, and other volumes leave less"},
		"growing when other files fill the disk": {Room{total: 10 * gi, free: gi}, 6 * gi, 4 * gi, "6Gi is asked for, and less of 10Gi is free"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.Room.check(test.wanted, test.has)
			if test.problem == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if test.problem != "" && (!errors.Is(err, layout.ErrExhausted) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want one that says %q", err, test.problem)
			}
		})
	}
}

func TestTheReasonForNoRoomStaysTheSameWhileTheDiskChanges(t *testing.T) {
	full := Room{total: 10 * gi, free: 3 * gi, reserved: gi}
	fuller := Room{total: 10 * gi, free: 2 * gi, used: 5 * gi, reserved: gi}
	crowded, less := full, fuller
	crowded.given, less.given, less.unwritten = 6*gi, 7*gi, gi
	for name, pair := range map[string][2]string{
		"other files":   {full.check(5*gi, 0).Error(), fuller.check(5*gi, gi).Error()},
		"other volumes": {crowded.check(4*gi, 0).Error(), less.check(4*gi, gi).Error()},
		"the disk":      {fullness(full), fullness(fuller)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: first %q, and then %q", name, pair[0], pair[1])
		}
	}
}

// fullness is what a NodeDisk says of a disk without room.
func fullness(of Room) string {
	of.free = 0
	_, message := of.Fullness()
	return message
}
