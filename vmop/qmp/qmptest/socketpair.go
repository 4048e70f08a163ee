package qmptest

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// SocketPair returns two ends of a Unix stream socket, over which files can be passed.
func SocketPair() (client, server *net.UnixConn, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	client, err = unixConn(fds[0])
	if err != nil {
		_ = syscall.Close(fds[1])
		return nil, nil, err
	}
	server, err = unixConn(fds[1])
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, server, nil
}

func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socketpair")
	defer f.Close() // FileConn has its own duplicate
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("socket pair is a %T", conn)
	}
	return u, nil
}
