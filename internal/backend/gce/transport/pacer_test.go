package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// refusing answers each call with a status and a Retry-After.
type refusing struct {
	status int
	after  string
	calls  int
}

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls++
	answer := httptest.NewRecorder()
	answer.Header().Set("Retry-After", r.after)
	answer.WriteHeader(r.status)
	return answer.Result(), nil
}

func TestAPauseLastsAsLongAsRequested(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		status int
		after  string
		want   time.Duration
	}{
		"seconds":         {http.StatusTooManyRequests, "7", 7 * time.Second},
		"a time":          {http.StatusServiceUnavailable, began.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		"a time long ago": {http.StatusServiceUnavailable, began.Add(-time.Minute).Format(http.TimeFormat), 0},
		"too long":        {http.StatusServiceUnavailable, "60000", maxPause},
		"nothing":         {http.StatusTooManyRequests, "", 0},
		"nonsense":        {http.StatusTooManyRequests, "later", 0},
		"another refusal": {http.StatusForbidden, "7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := began
			next := &refusing{status: test.status, after: test.after}
			paced := &pacer{next: next, now: func() time.Time { return now }}
			call := func() {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
				if answer, err := paced.RoundTrip(request); err == nil {
					answer.Body.Close()
				}
			}
			call()
			if test.want > 0 {
				now = began.Add(test.want - time.Millisecond)
				call()
				if next.calls != 1 {
					t.Error("it was called too early")
				}
			}
			now = began.Add(test.want)
			call()
			if next.calls != 2 {
				t.Errorf("it was called %d times", next.calls)
			}
		})
	}
}
