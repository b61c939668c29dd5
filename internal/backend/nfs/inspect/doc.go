// Package inspect checks a directory before any of it is removed, if the server maps root to another
// user: so nothing is half removed.
//
// Deletion and recycling call it until it is done: a file on the share has the position. It removes
// nothing, and only moves a directory that has that file's name.
package inspect
