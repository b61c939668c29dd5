package inspect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func FuzzProgress(f *testing.F) {
	f.Add([]byte(`{"of": "it", "written": "2026-01-01T00:00:00Z", "place": {"steps": [{"at": {"cookie": 7}}, {"name": "YQ==", "at": {}}], "seen": 5}}`))
	f.Add([]byte(`{"of": "it", "written": "2026-01-01T00:00:00Z", "done": true}`))
	f.Add([]byte(`{"of": "it", "place": {"steps": [` + strings.Repeat(`{"name": "YQ=="},`, 640) + `{}]}}`))
	f.Add([]byte(`{"of": "it", "written": "9999-12-31T23:59:59Z", "place": {"seen": 1e30}}`))
	now := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		found := progressFrom(data, "it", now)
		written, err := json.Marshal(found)
		if len(written) > maxProgress+len(data) || err != nil || len(found.Position.Steps) > 64 {
			t.Errorf("it goes on at %d steps, written as %d bytes, %v", len(found.Position.Steps), len(written), err)
		}
		if got := rounded(found.Position.Seen); got < 0 || got > found.Position.Seen {
			t.Errorf("%d is rounded to %d", found.Position.Seen, got)
		}
	})
}
