package io.weft.spark.executor;

import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.AskDepartures;
import io.weft.spark.message.Messages.Departures;
import io.weft.spark.message.Messages.MeetClique;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.transfers.TransferDriver;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.api.plugin.PluginContext;

/** Sends the calls of transfers to the driver's plugin. Thread-safe. */
final class PluginTransferDriver implements TransferDriver {
  private final PluginContext context;

  PluginTransferDriver(PluginContext context) {
    this.context = context;
  }

  @Override
  public RendezvousAnswer ask(RendezvousCall<CliquePair> call) throws Exception {
    return (RendezvousAnswer) send(new MeetClique(call));
  }

  @Override
  public List<ExecutorLoss> lossesSince(int known) throws Exception {
    return ((Departures) send(new AskDepartures(known))).departures();
  }

  private Object send(Serializable message) throws Exception {
    return MessageCodec.decode(context.ask(MessageCodec.encode(message)));
  }
}
