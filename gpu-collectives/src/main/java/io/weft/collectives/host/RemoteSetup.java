package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Topology;
import io.weft.collectives.bootstrap.Connector;
import io.weft.collectives.bootstrap.DeadlinePoller;
import io.weft.collectives.bootstrap.FrameChannel;
import io.weft.collectives.bootstrap.Greeting;
import io.weft.collectives.bootstrap.Greeting.Purpose;
import io.weft.collectives.bootstrap.Listener;
import io.weft.device.Deadline;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Connects the ranks of different hosts. Every pair has one connection for each purpose, so that no
 * purpose delays another. The higher rank of a pair connects to the lower. A rank sends greetings
 * to all others before it waits for any, so there is no circular wait. Used once, by one thread.
 */
final class RemoteSetup {
  private static final List<Purpose> PURPOSES =
      List.of(Purpose.CONTROL, Purpose.PAIRS, Purpose.COLLECTIVES);

  private final Bootstrap bootstrap;
  private final Deadline deadline;
  private final List<Integer> remotes = new ArrayList<>();
  private final Map<Integer, Map<Purpose, SocketChannel>> connected = new LinkedHashMap<>();

  RemoteSetup(Bootstrap bootstrap, Topology topology, Deadline deadline) {
    this.bootstrap = bootstrap;
    this.deadline = DeadlinePoller.beforeOthers(deadline);
    int host = topology.hostOf(bootstrap.rank());
    for (int rank = 0; rank < bootstrap.nranks(); rank++) {
      if (topology.hostOf(rank) != host) {
        remotes.add(rank);
        connected.put(rank, new HashMap<>());
      }
    }
  }

  /** Encodes an address for the exchange. */
  static byte[] encode(InetSocketAddress address) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeUTF(address.getHostString());
    out.writeInt(address.getPort());
    return bytes.toByteArray();
  }

  private static InetSocketAddress decode(byte[] message) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
    return new InetSocketAddress(in.readUTF(), in.readInt());
  }

  /**
   * Connects to all ranks of other hosts.
   *
   * @param addresses where each rank listens
   * @param resources take ownership of the connections
   */
  RemoteRanks connect(Listener listener, List<byte[]> addresses, HostResources resources)
      throws IOException {
    List<Connector> connectors = new ArrayList<>();
    try {
      Map<Greeting, Connector> greeted = greetLower(addresses, connectors);
      acceptHigher(listener);
      for (Map.Entry<Greeting, Connector> entry : greeted.entrySet()) {
        SocketChannel channel = entry.getValue().awaitWelcome(deadline);
        connected.get(entry.getKey().to()).put(entry.getKey().purpose(), channel);
      }
      return remoteRanks(resources);
    } catch (IOException | RuntimeException e) {
      for (Connector connector : connectors) {
        connector.close();
      }
      for (Map<Purpose, SocketChannel> channels : connected.values()) {
        for (SocketChannel channel : channels.values()) {
          channel.close();
        }
      }
      throw e;
    }
  }

  private Map<Greeting, Connector> greetLower(List<byte[]> addresses, List<Connector> connectors)
      throws IOException {
    Map<Greeting, Connector> greeted = new LinkedHashMap<>();
    for (int rank : remotes) {
      if (rank < bootstrap.rank()) {
        for (Purpose purpose : PURPOSES) {
          Greeting greeting = new Greeting(bootstrap.rank(), rank, purpose);
          Connector connector =
              Connector.greet(bootstrap.id(), greeting, decode(addresses.get(rank)), deadline);
          connectors.add(connector);
          greeted.put(greeting, connector);
        }
      }
    }
    return greeted;
  }

  private void acceptHigher(Listener listener) throws IOException {
    Set<Greeting> expected = new HashSet<>();
    for (int rank : remotes) {
      if (rank > bootstrap.rank()) {
        PURPOSES.forEach(purpose -> expected.add(new Greeting(rank, bootstrap.rank(), purpose)));
      }
    }
    listener
        .await(bootstrap.id(), expected, deadline)
        .forEach(
            (greeting, channel) -> connected.get(greeting.from()).put(greeting.purpose(), channel));
    List<Integer> absent =
        remotes.stream()
            .filter(rank -> rank > bootstrap.rank())
            .filter(rank -> connected.get(rank).size() < PURPOSES.size())
            .toList();
    if (!absent.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.TIMEOUT,
          absent,
          CollectiveException.name(absent)
              + " did not connect to rank "
              + bootstrap.rank()
              + " at "
              + listener.address()
              + " within "
              + deadline);
    }
  }

  private RemoteRanks remoteRanks(HostResources resources) throws IOException {
    Map<Integer, RemoteRanks.Remote> all = new LinkedHashMap<>();
    List<ControlPeer> peers = new ArrayList<>();
    for (int rank : remotes) {
      Map<Purpose, SocketChannel> channels = connected.get(rank);
      ControlPeer peer =
          new ControlPeer(
              rank,
              bootstrap.nranks(),
              new FrameChannel(channels.get(Purpose.CONTROL), ControlPeer.MAX_BYTES));
      peers.add(peer);
      SocketLink pairs = resources.add(new SocketLink(channels.get(Purpose.PAIRS)));
      SocketLink collectives = resources.add(new SocketLink(channels.get(Purpose.COLLECTIVES)));
      all.put(rank, new RemoteRanks.Remote(peer, List.of(pairs, collectives)));
    }
    ControlAgent agent = resources.add(new ControlAgent(bootstrap.id(), bootstrap.rank(), peers));
    return new RemoteRanks(all, Optional.of(agent));
  }
}
