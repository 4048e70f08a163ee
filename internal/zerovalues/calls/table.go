package main

// The test replaces this file by one with what the library exports.
var functions, values []named
