/**
 * Transfers between executors that are threads, objects or processes. What holds of every
 * implementation is in {@code TransferContract}; its tests name their communicators.
 */
package io.weft.transfers;
