/**
 * The wire protocol between the two ends of a clique: first the offers, as manifests with each
 * transfer's key, then the payload of the matched transfers, as one group.
 *
 * <p>A wire is used by the thread of its clique's lane; only aborting it is thread-safe. It owns
 * the memory of the manifests, not the communicator.
 */
package io.weft.crosshost.wire;
