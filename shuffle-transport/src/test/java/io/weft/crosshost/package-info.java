/**
 * Transfers between executors that are threads, objects or processes. What holds of every
 * implementation is in {@code TransferContract}; its tests say which communicators they use.
 */
package io.weft.crosshost;
