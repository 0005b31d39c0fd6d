/**
 * What the two ends of a clique say to each other: first what each offers, as a manifest with every
 * transfer's key, then the payload of what both agree on, as one group.
 *
 * <p>A wire is used by one thread, that of its clique's lane; only aborting it is thread-safe. It
 * owns the memory of the manifests, not the communicator.
 */
package io.weft.crosshost.wire;
