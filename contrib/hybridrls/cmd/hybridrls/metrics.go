package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hybridlimit/hybrid/contrib/hybridrls"
)

// Metrics of the service itself; those of its limits are the node's. All are there
// from the first scrape, at 0, and no label has what a gateway sends.
var (
	requestsDesc = prometheus.NewDesc("hybrid_rls_requests_total",
		"Calls of the service, by what they were answered: allowed (OK), denied (OVER_LIMIT) or error.", []string{"result"}, nil)
	unknownDomainsDesc = prometheus.NewDesc("hybrid_rls_unknown_domain_requests_total",
		"Requests for a domain that has no rules. They are allowed.", nil, nil)
	unmatchedDesc = prometheus.NewDesc("hybrid_rls_unmatched_descriptors_total",
		"Descriptors that no rule matches. They are allowed.", nil, nil)
	reloadsDesc = prometheus.NewDesc("hybrid_rls_reloads_total",
		"Changed files of rules: success is in force, failure was left alone.", []string{"result"}, nil)
	rulesDesc = prometheus.NewDesc("hybrid_rls_rules",
		"Rules in force, of all domains.", nil, nil)
)

// serviceMetrics are the counts of a server, read when they are collected.
type serviceMetrics struct{ rls *hybridrls.Server }

func (m serviceMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, unknownDomainsDesc, unmatchedDesc, reloadsDesc, rulesDesc} {
		ch <- d
	}
}

func (m serviceMetrics) Collect(ch chan<- prometheus.Metric) {
	st := m.rls.Stats()
	count := func(desc *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	count(requestsDesc, st.Allowed, "allowed")
	count(requestsDesc, st.Denied, "denied")
	count(requestsDesc, st.Errors, "error")
	count(unknownDomainsDesc, st.UnknownDomains)
	count(unmatchedDesc, st.Unmatched)
	count(reloadsDesc, st.Reloads, "success")
	count(reloadsDesc, st.BadFiles, "failure")
	ch <- prometheus.MustNewConstMetric(rulesDesc, prometheus.GaugeValue, float64(st.Rules))
}
