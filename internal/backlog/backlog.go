// Package backlog keeps what waits while a program starts, and gives the memory back afterwards. When a watch begins,
// or compares all again, each object is an event, and each event is work. Neither the buffers of client-go's
// informers nor the maps of controller-runtime's work queues get smaller once they are empty.
package backlog
