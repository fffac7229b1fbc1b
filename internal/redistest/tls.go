package redistest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartTLS runs a redis-server that speaks only TLS and lets in only clients with a
// certificate of its authority, which is made for the test. The configuration is that
// of such a client.
func StartTLS(t testing.TB) (*Server, *tls.Config) {
	t.Helper()
	need(t, "redis-server")
	dir := t.TempDir()
	client := makeCertificates(t, dir)
	for range 10 {
		port := freePort(t)
		s := launch(t, "redis-server", port, "--port", "0", "--tls-port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--tls-cert-file", filepath.Join(dir, "server.crt"), "--tls-key-file", filepath.Join(dir, "server.key"),
			"--tls-ca-cert-file", filepath.Join(dir, "ca.crt"), "--tls-auth-clients", "yes",
			"--save", "", "--appendonly", "no", "--loglevel", "warning")
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, TLSConfig: client, MaxRetries: -1, DialerRetries: 1})
		ready := s.wait(func() bool { return rdb.Ping(context.Background()).Err() == nil })
		_ = rdb.Close()
		if ready {
			return s, client
		}
		s.Kill() // most likely somebody else took the port
	}
	t.Fatal("redistest: redis-server does not start with TLS; is it built with it?")
	return nil, nil
}

// makeCertificates writes an authority and the server's certificate to dir, and
// returns what a client needs.
func makeCertificates(t testing.TB, dir string) *tls.Config {
	t.Helper()
	ca := newAuthority(t)
	writePEM(t, filepath.Join(dir, "ca.crt"), "CERTIFICATE", ca.cert.Raw)
	server := ca.issue(t, "server", x509.ExtKeyUsageServerAuth)
	writePEM(t, filepath.Join(dir, "server.crt"), "CERTIFICATE", server.Certificate[0])
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	must(t, err)
	writePEM(t, filepath.Join(dir, "server.key"), "PRIVATE KEY", key)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return &tls.Config{
		RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{ca.issue(t, "client", x509.ExtKeyUsageClientAuth)},
	}
}

// authority signs the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert: cert, key: key}
}

func (a *authority) issue(t testing.TB, name string, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	template := certificate(name)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// certificate is a template that is good for an hour around now.
func certificate(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-30 * time.Minute), NotAfter: time.Now().Add(30 * time.Minute),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
