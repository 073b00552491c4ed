"""The best engines for a service, and its replicas over a day."""
