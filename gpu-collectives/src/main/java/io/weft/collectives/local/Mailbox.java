package io.weft.collectives.local;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.HostEvent;
import io.weft.memory.Memory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/**
 * Sends and receives from one rank to another that have no match yet. The second of a pair copies
 * the elements. Thread-safe.
 */
final class Mailbox {
  private record Post(TypedBuffer buffer, HostEvent event) {}

  private final int from;
  private final int to;
  private final Queue<Post> sends = new ArrayDeque<>();
  private final Queue<Post> receives = new ArrayDeque<>();
  private CollectiveException failure;

  Mailbox(int from, int to) {
    this.from = from;
    this.to = to;
  }

  /** Posts a send; the event ends once the peer has the elements. */
  HostEvent send(TypedBuffer buffer) {
    Post post = new Post(buffer, new HostEvent("send from rank " + from + " to rank " + to));
    match(post, sends, receives);
    return post.event();
  }

  /** Posts a receive; the event ends once the elements have arrived. */
  HostEvent receive(TypedBuffer buffer) {
    Post post = new Post(buffer, new HostEvent("receive by rank " + to + " from rank " + from));
    match(post, receives, sends);
    return post.event();
  }

  /** Fails waiting and future sends and receives. */
  void fail(CollectiveException cause) {
    List<Post> waiting;
    synchronized (this) {
      failure = failure == null ? cause : failure;
      waiting = new ArrayList<>(sends);
      waiting.addAll(receives);
      sends.clear();
      receives.clear();
    }
    waiting.forEach(post -> post.event().fail(cause));
  }

  private void match(Post mine, Queue<Post> own, Queue<Post> others) {
    Post other;
    CollectiveException before;
    synchronized (this) {
      before = failure;
      other = before == null ? others.poll() : null;
      if (before == null && other == null) {
        own.add(mine);
      }
    }
    if (before != null) {
      mine.event().fail(before);
    } else if (other != null) {
      Post send = own == sends ? mine : other;
      Post receive = own == sends ? other : mine;
      deliver(send, receive);
    }
  }

  private void deliver(Post send, Post receive) {
    TypedBuffer source = send.buffer();
    TypedBuffer target = receive.buffer();
    if (source.type() != target.type() || source.count() != target.count()) {
      CollectiveException mismatch = mismatch(source, target);
      send.event().fail(mismatch);
      receive.event().fail(mismatch);
      return;
    }
    Memory.copy(source.address(), target.address(), source.bytes());
    send.event().complete();
    receive.event().complete();
  }

  private CollectiveException mismatch(TypedBuffer source, TypedBuffer target) {
    return new CollectiveException(
        CollectiveException.Kind.MISMATCH,
        List.of(Math.min(from, to), Math.max(from, to)),
        "rank "
            + from
            + " sends "
            + source.count()
            + " "
            + source.type()
            + " but rank "
            + to
            + " receives "
            + target.count()
            + " "
            + target.type());
  }
}
