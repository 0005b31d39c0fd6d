package io.weft.spark.transfers;

import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLossMonitor;
import io.weft.spark.rendezvous.RendezvousService.RendezvousDriver;

/** The requests of an executor's transfers to the driver. Implementations are thread-safe. */
public interface TransferDriver extends RendezvousDriver<CliquePair>, ExecutorLossMonitor.Source {}
