// SPDX-License-Identifier: MIT OR Apache-2.0

// Sends standard input to HOST PORT, rudely where that is allowed: go run rude.go HOST PORT < FILE
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"syscall"
)

// Of include/fatpath/rude.h.
const (
	tcpRude = 0x7001
	rudeOn  = 1
)

var states = []string{"polite", "rude", "going polite"}

// beRude answers what the connection is. Where it is refused, it goes on with congestion control.
func beRude(connection *net.TCPConn) (string, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return "", err
	}
	state := 0
	err = raw.Control(func(fd uintptr) {
		if refused := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpRude, rudeOn); refused != nil {
			log.Printf("not rude: %v", refused)
		}
		state, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpRude)
	})
	return states[state], err
}

func send(host, port string) error {
	connection, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer connection.Close()
	state, err := beRude(connection.(*net.TCPConn))
	if err != nil {
		return err
	}
	fmt.Println(state)
	_, err = io.Copy(connection, os.Stdin)
	return err
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: rude HOST PORT < FILE")
	}
	if err := send(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
