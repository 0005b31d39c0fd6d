package io.weft.transfers;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** The event of Java Flight Recorder for one end of a transfer of an array. */
@Name("weft.Transfer")
@Label("Transfer")
@Description("One end of a transfer of an array, from its preparation to its end")
@Category("Weft")
@Enabled(false)
@StackTrace(false)
final class TransferEvent extends Event {
  private static final TransferEvent SWITCH = new TransferEvent();

  @Label("Direction")
  @Description("send or receive")
  String direction;

  @Label("Key")
  long key;

  @Label("Bytes")
  @Description("Bytes of the array before it is encoded")
  @DataAmount
  long bytes;

  @Label("Device")
  @Description("The device at this end")
  String device;

  @Label("Peer")
  @Description("The device at the other end")
  String peer;

  @Label("Failure")
  @Description("Why the transfer failed; empty if it succeeded")
  String failure;

  /** Traces a transfer to its end if a recording wants it. Else allocates nothing. */
  static void follow(PreparedTransfer transfer) {
    if (SWITCH.isEnabled()) {
      TransferEvent event = new TransferEvent();
      event.begin();
      transfer.event().whenDone(cause -> event.finish(transfer, cause));
    }
  }

  private void finish(PreparedTransfer transfer, Throwable cause) {
    end();
    direction = transfer.sends() ? "send" : "receive";
    key = transfer.key();
    bytes = transfer.buffer().bytes();
    device = transfer.local().toString();
    peer = transfer.peer().toString();
    failure = cause == null ? "" : PreparedTransfer.text(cause);
    commit();
  }
}
