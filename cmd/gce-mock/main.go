// Command gce-mock serves Google's Compute API, as far as disks and what they are
// attached to go, from a folder of this machine. It is for tests and demos.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/stowage-dev/stowage/internal/gcemock"
)

const (
	// A client gets this long to send the head of a request, and to hear the rest of
	// its answer when the server ends.
	headPatience = 10 * time.Second
	endPatience  = 2 * time.Second
)

func main() {
	options, err := parse(os.Args[1:])
	if err == nil {
		err = run(options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gce-mock:", err)
		os.Exit(1)
	}
}

func run(options options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-options.logLevel)}))
	cloud, err := options.cloud(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()
	if err := options.fill(cloud); err != nil {
		return err
	}
	// Before the endpoint is known, since clients read the certificate then.
	secure, err := options.tlsConfig()
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", options.listen)
	if err != nil {
		return err
	}
	log.Info("serving the Compute API", "endpoint", options.scheme()+"://"+listener.Addr().String()+"/compute/v1/")
	return serve(ctx, listener, cloud, secure)
}

// serve serves until the context ends, with HTTPS if there is a configuration for it.
func serve(ctx context.Context, listener net.Listener, cloud *gcemock.Server, secure *tls.Config) error {
	server := &http.Server{Handler: cloud, ReadHeaderTimeout: headPatience, TLSConfig: secure}
	ended := make(chan error, 1)
	go func() {
		if secure != nil {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		return server.Close() // clients that wait for operations wait no longer
	}
	return nil
}

// fill makes the instances and arms the faults that were asked for.
func (o options) fill(cloud *gcemock.Server) error {
	for _, text := range o.faults {
		fault, err := gcemock.ParseFault([]byte(text))
		if err == nil {
			err = cloud.Inject(fault)
		}
		if err != nil {
			return fmt.Errorf("--fault %s: %w", text, err)
		}
	}
	for _, text := range o.instances {
		zone, rest, found := strings.Cut(text, "/")
		name, machineType, typed := strings.Cut(rest, ":")
		if !found {
			return fmt.Errorf("--instance is zone/name or zone/name:machine-type, not %q", text)
		}
		if !typed {
			machineType = "e2-standard-2"
		}
		if err := cloud.EnsureInstance(o.projects[0], zone, name, machineType); err != nil {
			return err
		}
	}
	return nil
}
