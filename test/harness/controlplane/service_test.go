package controlplane

import (
	"io"
	"net"
	"testing"
)

func TestWhatIsSentToTheServiceComesToTheServer(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			connection, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(connection, connection) }()
		}
	}()
	forwarder, err := forward("127.0.0.1:0", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", forwarder.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	answer := make([]byte, 5)
	if _, err := connection.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "hello" {
		t.Errorf("the server answers %q: %v", answer, err)
	}
	if err := forwarder.close(); err != nil {
		t.Error(err)
	}
	if n, err := connection.Read(answer); err == nil {
		t.Errorf("after the end it still answers, %d bytes", n)
	}
}

func TestAdministratorsAreToldWhichControllersStowageReplaces(t *testing.T) {
	controllers, err := StandaloneControllers()
	if err != nil || controllers == "" || controllers[:2] != "*," {
		t.Errorf("%q, %v", controllers, err)
	}
}
