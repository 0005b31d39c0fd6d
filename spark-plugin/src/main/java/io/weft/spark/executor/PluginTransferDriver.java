package io.weft.spark.executor;

import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.AskDepartures;
import io.weft.spark.message.Messages.Departures;
import io.weft.spark.message.Messages.MeetClique;
import io.weft.spark.transfers.CliqueAnswer;
import io.weft.spark.transfers.CliqueCall;
import io.weft.spark.transfers.Departure;
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
  public CliqueAnswer meet(CliqueCall call) throws Exception {
    return (CliqueAnswer) ask(new MeetClique(call));
  }

  @Override
  public List<Departure> departures(int known) throws Exception {
    return ((Departures) ask(new AskDepartures(known))).departures();
  }

  private Object ask(Serializable message) throws Exception {
    return MessageCodec.decode(context.ask(MessageCodec.encode(message)));
  }
}
