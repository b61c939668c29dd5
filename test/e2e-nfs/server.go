package main

import "github.com/stowage-dev/stowage/test/guests"

// server is an NFS server with a backend's volumes.
type server struct{ *guests.NFSServer }

// newServer prepares one.
func newServer(port int, folder guests.Folder) (*server, error) {
	made, err := guests.NewNFSServer(port, folder)
	return &server{made}, err
}
