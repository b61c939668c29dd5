package gcemock

import (
	"crypto/subtle"
	"net/http"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// token is the bearer token that each call must carry. Empty: any, or none.
type token string

// authorize checks the token of a call, where one is required.
func (t token) authorize(r *http.Request) error {
	if t == "" {
		return nil
	}
	wanted := []byte("Bearer " + string(t))
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), wanted) == 1 {
		return nil
	}
	return &wire.Error{
		Status: http.StatusUnauthorized, Reason: wire.ReasonAuthorization,
		Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
	}
}

// exchange answers a service account's key with an access token, as Google's token endpoint
// does: put its URL into the key as token_uri. Where calls must carry a token, it refuses
// every key.
func (t token) exchange(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("assertion") == "" || t != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"Invalid grant: account not found"}`))
		return
	}
	wire.Respond(w, map[string]any{"access_token": "any", "token_type": "Bearer", "expires_in": 3600}, nil)
}
