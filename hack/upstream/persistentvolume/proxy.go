package persistentvolume

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"

	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// proxy lets another process reach the API server of a test as the client that the
// test gave its controller: a client doesn't reveal how it signs in.
type proxy struct {
	address string
	server  *http.Server
}

func serve(client clientset.Interface) (*proxy, error) {
	api, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return nil, errors.New("the test's client reaches no API server")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the manager: %w", err)
	}
	base := api.Get().URL()
	forward := &httputil.ReverseProxy{
		Transport: api.Client.Transport,
		// Events of a watch go on as they come.
		FlushInterval: -1,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.Out.URL.Scheme, request.Out.URL.Host, request.Out.Host = base.Scheme, base.Host, base.Host
		},
		// A manager that is killed leaves requests behind.
		ErrorHandler: func(writer http.ResponseWriter, _ *http.Request, _ error) { writer.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{Handler: forward}
	go func() { _ = server.Serve(listener) }() // it ends with close
	return &proxy{listener.Addr().String(), server}, nil
}

func (p *proxy) close() { _ = p.server.Close() } // the test is over

func (p *proxy) kubeconfig() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "http://%s"}}]
contexts: [{name: test, context: {cluster: test}}]
`, p.address)
}
