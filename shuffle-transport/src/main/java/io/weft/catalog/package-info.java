/**
 * Map outputs and the location of their chunks: the catalog of the owner, the index files that it
 * publishes, and reading in place by executors on the same host.
 */
package io.weft.catalog;
