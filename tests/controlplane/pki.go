package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lifetime is far longer than a test run and far shorter than a mistake would last.
const lifetime = 48 * time.Hour

// authority signs the certificates of one throwaway control plane into one folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writePKI fills a folder with ca.crt, apiserver.{crt,key}, service-account.{key,pub} and, for each
// NAME=COMMON_NAME[/ORGANIZATION], the client certificate NAME.{crt,key}. The CA's own key is never
// written: nothing is to be signed later.
func writePKI(args []string) error {
	if len(args) < 1 {
		return errors.New(usage)
	}
	ca, err := newAuthority(args[0])
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if err := ca.issue("apiserver", server); err != nil {
		return err
	}
	for _, arg := range args[1:] {
		name, subject, found := strings.Cut(arg, "=")
		if !found {
			return errors.New(usage)
		}
		if err := ca.issueClient(name, subject); err != nil {
			return err
		}
	}
	return writeServiceAccountKeys(args[0])
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &authority{dir: dir, key: key}
	ca.cert = &x509.Certificate{
		Subject:               pkix.Name{CommonName: "gpuadmin test CA"},
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := ca.sign(ca.cert, key)
	if err != nil {
		return nil, err
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return ca, writePEM(dir, "ca.crt", "CERTIFICATE", der)
}

// issueClient takes a subject as Kubernetes reads it: the common name is the user, the organization
// its group.
func (ca *authority) issueClient(name, subject string) error {
	user, group, grouped := strings.Cut(subject, "/")
	client := &x509.Certificate{
		Subject:     pkix.Name{CommonName: user},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if grouped {
		client.Subject.Organization = []string{group}
	}
	return ca.issue(name, client)
}

func (ca *authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := ca.sign(template, key)
	if err != nil {
		return err
	}
	if err := writePEM(ca.dir, name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(ca.dir, name+".key", key)
}

func (ca *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	return x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
}

func writeServiceAccountKeys(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePEM(dir, "service-account.pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(dir, "service-account.key", key)
}

func writeKey(dir, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(dir, name, "PRIVATE KEY", der)
}

func writePEM(dir, name, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}
