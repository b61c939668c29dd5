// Package inspect looks through a directory before any of it is removed, where the server doesn't
// let the manager act as root: so nothing is half removed.
//
// Deletion and recycling call it, as often as it takes: the position is kept in a file on the
// share. It removes nothing but what is in the way of that file.
package inspect
