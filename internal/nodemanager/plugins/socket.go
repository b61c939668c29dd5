package plugins

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/message"
)

const (
	// infoTimeout bounds each call to a registration socket.
	infoTimeout = 5 * time.Second
	// firstRetry is how soon a failed registration is repeated. The time doubles with each
	// failure, up to lastRetry.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
	// maxInfo bounds the answers of a registration socket, in bytes.
	maxInfo = 64 << 10
	// maxText bounds what the log and the driver get of an error.
	maxText = 1024
)

// socket is one registration socket.
type socket struct {
	names      *names
	isReserved func(name string) bool
	handler    Handler
	path       string
	identity   identity
	// gone is closed when the socket is gone, or another one is at its path.
	gone chan struct{}
	// ended is closed when run has ended, and previous is that of the earlier socket at the path:
	// a driver that restarts is deregistered before it registers again.
	ended, previous chan struct{}
}

// run registers the driver behind the socket, and deregisters it once the socket is gone.
func (s *socket) run(ctx context.Context) {
	defer close(s.ended)
	if s.previous != nil {
		<-s.previous
	}
	log := logf.FromContext(ctx).WithValues("socket", s.path)
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.gone:
			cancel()
		case <-until.Done():
		}
	}()
	logged := ""
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		driver, err := s.register(until)
		if err == nil {
			log.Info("registered a CSI driver", "driver", driver.Name, "endpoint", driver.Endpoint)
			s.await(ctx, driver)
			return
		}
		if text := message.Cut(err.Error(), maxText); text != logged && until.Err() == nil {
			logged = text
			log.Info("a CSI driver isn't registered, and is tried again", "reason", text)
		}
		select {
		case <-until.Done():
			return
		case <-time.After(wait):
		}
	}
}

// await deregisters a driver when its socket is gone. When the agent ends, the driver stays
// registered: its volumes stay mounted, too.
func (s *socket) await(ctx context.Context, driver Plugin) {
	select {
	case <-ctx.Done():
	case <-s.gone:
		s.deregister(ctx, driver)
		logf.FromContext(ctx).Info("a CSI driver is no longer registered: its registration socket is gone", "driver", driver.Name, "socket", s.path)
	}
}

// deregister undoes a registration. The name is free after that, so that no other registration of
// the driver is undone.
func (s *socket) deregister(ctx context.Context, driver Plugin) {
	s.handler.Deregister(ctx, driver)
	s.names.release(driver.Name)
}

// register asks for the driver, has it taken up, and answers it.
func (s *socket) register(ctx context.Context) (Plugin, error) {
	connection, err := Dial(s.path, maxInfo)
	if err != nil {
		return Plugin{}, err
	}
	defer connection.Close()
	driver, err := s.driverFrom(ctx, connection)
	if err == nil {
		err = s.takeUp(ctx, driver)
	}
	if err != nil {
		// The answer is for the log of the driver; the agent's has the error itself.
		_ = notify(ctx, connection, err)
		return Plugin{}, err
	}
	// When the agent ends during the answer, the driver stays registered. When the socket went, await
	// finds out.
	if err := notify(ctx, connection, nil); err != nil && ctx.Err() == nil {
		s.deregister(ctx, driver)
		return Plugin{}, fmt.Errorf("answering the registration of driver %s: %w", driver.Name, err)
	}
	return driver, nil
}

// driverFrom reads and checks what the socket says of its driver.
func (s *socket) driverFrom(ctx context.Context, connection *grpc.ClientConn) (Plugin, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := registration.NewRegistrationClient(connection).GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		return Plugin{}, fmt.Errorf("calling GetInfo: %w", err)
	}
	return check(info, s.path, s.isReserved)
}

// takeUp has a driver used under its name.
func (s *socket) takeUp(ctx context.Context, driver Plugin) error {
	if err := s.names.claim(driver.Name, s.path); err != nil {
		return err
	}
	err := s.handler.Register(ctx, driver)
	if err != nil {
		s.names.release(driver.Name)
	}
	return err
}

// notify tells a driver whether it is registered.
func notify(ctx context.Context, connection *grpc.ClientConn, problem error) error {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	status := &registration.RegistrationStatus{PluginRegistered: problem == nil}
	if problem != nil {
		status.Error = message.Cut(problem.Error(), maxText)
	}
	_, err := registration.NewRegistrationClient(connection).NotifyRegistrationStatus(ctx, status)
	return err
}
