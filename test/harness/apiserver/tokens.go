package apiserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// administrator is the user of a server's Config.
const administrator = "stowage-administrator"

// tokens are those of the tests' own users. A server would verify a certificate again for each
// request, which is a tenth of its time.
var tokens = map[string]string{administrator: rand.Text(), impersonator: rand.Text()}

// acceptTokens has a server know the tests' own users, all of system:masters.
func acceptTokens(server *envtest.APIServer) error {
	file, err := os.CreateTemp("", "tokens-*.csv")
	if err != nil {
		return fmt.Errorf("making a file of tokens: %w", err)
	}
	for user, token := range tokens {
		_, problem := fmt.Fprintf(file, "%s,%s,%s,system:masters\n", token, user, user)
		err = errors.Join(err, problem)
	}
	server.Configure().Set("token-auth-file", file.Name())
	return errors.Join(err, file.Close())
}

func (s *Server) withToken(user string) *rest.Config {
	config := rest.CopyConfig(s.env.Config)
	config.CertData, config.KeyData, config.BearerToken = nil, nil, tokens[user]
	return config
}
