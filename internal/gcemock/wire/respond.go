package wire

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
)

// errorBody is what Google answers instead of a resource.
type errorBody struct {
	Error errorDetails `json:"error"`
}

type errorDetails struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Errors  []errorItem `json:"errors"`
	Status  string      `json:"status,omitempty"`
}

type errorItem struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	Location     string `json:"location,omitempty"`
	LocationType string `json:"locationType,omitempty"`
}

func (e *Error) body() errorBody {
	item := errorItem{Message: e.Message, Domain: e.domain(), Reason: e.Reason}
	details := errorDetails{Code: e.Status, Message: e.Message}
	switch e.Status {
	case http.StatusPreconditionFailed:
		item.Location, item.LocationType = "If-Match", "header"
	case http.StatusUnauthorized:
		item.Location, item.LocationType = "Authorization", "header"
		details.Status = "UNAUTHENTICATED"
	}
	details.Errors = []errorItem{item}
	return errorBody{Error: details}
}

// Respond writes an answer, or the error instead of it.
func Respond(w http.ResponseWriter, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		known := AsError(err)
		status, answer = known.Status, known.body()
		if known.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://accounts.google.com/"`)
		}
	}
	text, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":500,"message":"Internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that hung up gets nothing
}
