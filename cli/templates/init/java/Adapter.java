// Adapter for {{ name }}: fill in chooseCpus. When you implement more, claim it in HELLO.
// Java 17 or later compiles this file when it runs it, in half the time with {{ skeleton.command.split()[1] }}.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class Adapter {
    static final Object HELLO = Json.parse("""
        {"protocol": 1, "name": "{{ name }}", "version": "0.1.0", "language": "Java",
         "kubernetes": ["{{ kubernetes }}"], "level": "invariants",
         "operations": ["start", "admit", "remove", "state"], "policies": {"cpu": ["none", "static"]},
         "options": {}, "features": ["container-removal", "restart"]}""");

    // YOUR POLICY GOES HERE: chooses `count` of the `free` CPUs, which are sorted and always enough.
    // `machine` is cAdvisor's MachineInfo. At level invariants, any choice is correct.
    static List<Integer> chooseCpus(int count, List<Integer> free, Object machine) {
        return free.subList(0, count);
    }

    private Object machine;
    private boolean isStatic;
    private List<Integer> managed = List.of(); // empty under the none policy
    private List<Integer> allocatable = List.of();
    private Map<String, Map<String, List<Integer>>> held; // exclusive CPUs by uid and container
    private Path file;

    Object start(Object args) throws IOException {
        held = null; // if the start is refused, all other calls are faults
        file = null;
        machine = get(args, "machine");
        if (machine == null) return unsupported("discovery");
        var sorted = new TreeSet<Integer>();
        for (var node : list(get(machine, "topology")))
            for (var core : list(get(node, "cores"))) sorted.addAll(integers(get(core, "thread_ids")));
        var cpus = List.copyOf(sorted);
        var config = get(args, "config");
        var policy = text(get(config, "cpuManagerPolicy"), "none");
        if (!list(get(HELLO, "policies", "cpu")).contains(policy)) return refusedStart("unknown policy " + policy);
        isStatic = policy.equals("static");
        var fixed = isStatic ? reservedCpus(config, cpus) : List.<Integer>of();
        if (isStatic && (fixed.isEmpty() || !without(fixed, cpus).isEmpty()))
            return refusedStart("static needs a valid reservation");
        managed = isStatic ? cpus : List.of();
        allocatable = without(managed, fixed);
        var path = Path.of(text(get(args, "state_dir"), "."), "held.json");
        var saved = Files.exists(path) && isStatic ? Json.parse(Files.readString(path)) : null;
        var running = new LinkedHashMap<String, Map<String, List<Integer>>>();
        for (var pod : list(get(args, "pods"))) { // they are admitted again later
            var uid = text(get(pod, "metadata", "uid"), "");
            var own = running.computeIfAbsent(uid, one -> new LinkedHashMap<>());
            for (var name : names(pod)) own.put(name, integers(get(saved, uid, name)));
        }
        if (!without(exclusive(running), allocatable).isEmpty())
            return refusedStart("a pod's CPUs are not allocatable");
        held = running;
        file = path;
        return ok(Map.of("cpus", Map.of("all", listed(cpus), "allocatable", listed(allocatable)), "memory", List.of()));
    }

    Object admit(Object args) {
        var pod = get(args, "pod");
        if (!list(get(pod, "spec", "initContainers")).isEmpty() || get(pod, "spec", "resources") != null)
            return unsupported("init containers and pod-level resources");
        var uid = text(get(pod, "metadata", "uid"), "");
        var own = held.computeIfAbsent(uid, one -> new LinkedHashMap<>());
        for (var container : list(get(pod, "spec", "containers"))) {
            var name = text(get(container, "name"), "");
            if (!own.getOrDefault(name, List.of()).isEmpty()) continue; // admitted before: it keeps its CPUs
            var free = without(allocatable, exclusive(held));
            int count = isStatic ? exclusiveCount(pod, container) : 0;
            if (count > free.size()) {
                held.remove(uid);
                var message = count + " CPUs, " + free.size() + " free";
                return Map.of("refused", Map.of("reason", "UnexpectedAdmissionError", "message", message));
            }
            own.put(name, List.copyOf(chooseCpus(count, free, machine)));
        }
        return ok(Map.of("containers", shown(own)));
    }

    Object remove(Object args) {
        var uid = text(get(args, "uid"), "");
        if (get(args, "container") == null) held.remove(uid);
        else held.get(uid).put(text(get(args, "container"), ""), List.of());
        return ok(Map.of());
    }

    Object state() {
        var pods = new LinkedHashMap<String, Object>();
        held.forEach((uid, own) -> pods.put(uid, shown(own)));
        return ok(Map.of("shared", listed(shared()), "pods", pods));
    }

    private Object shown(Map<String, List<Integer>> own) {
        var noHint = new LinkedHashMap<String, Object>();
        noHint.put("numa", null);
        noHint.put("preferred", false);
        var containers = new LinkedHashMap<String, Object>();
        own.forEach((name, cpus) -> containers.put(name, Map.of(
            "cpus", listed(cpus.isEmpty() ? shared() : cpus), "exclusive", listed(cpus),
            "memory", List.of(), "affinity", noHint)));
        return containers;
    }

    private List<Integer> shared() {
        return without(managed, exclusive(held));
    }

    private void save() throws IOException {
        if (file != null) Files.writeString(file, Json.write(held));
    }

    // The CPUs reserved for the system: those in reservedSystemCPUs, or the lowest ones.
    private static List<Integer> reservedCpus(Object config, List<Integer> cpus) {
        var list = text(get(config, "reservedSystemCPUs"), "");
        var named = new TreeSet<Integer>();
        for (var part : list.isEmpty() ? new String[0] : list.split(",")) {
            var ends = part.split("-");
            IntStream.rangeClosed(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1])).forEach(named::add);
        }
        if (!list.isEmpty()) return List.copyOf(named);
        var reserved = BigDecimal.ZERO; // in CPUs, each amount rounded to thousandths
        for (var amounts : List.of("kubeReserved", "systemReserved"))
            reserved = reserved.add(quantity(get(config, amounts, "cpu")).setScale(3, RoundingMode.HALF_UP));
        int count = reserved.setScale(0, RoundingMode.CEILING).intValueExact();
        return count <= cpus.size() ? cpus.subList(0, count) : List.of();
    }

    // How many exclusive CPUs a container gets: only whole CPUs, only in Guaranteed pods.
    private static int exclusiveCount(Object pod, Object container) {
        boolean follows = true;
        for (var one : list(get(pod, "spec", "containers")))
            for (var name : List.of("cpu", "memory")) {
                var limit = quantity(get(one, "resources", "limits", name));
                follows &= limit.signum() > 0 && limit.compareTo(request(one, name)) == 0;
            }
        var qosClass = text(get(pod, "status", "qosClass"), follows ? "Guaranteed" : "");
        var cpus = request(container, "cpu").stripTrailingZeros();
        return qosClass.equals("Guaranteed") && cpus.scale() <= 0 ? cpus.intValueExact() : 0;
    }

    private static BigDecimal request(Object container, String name) {
        var request = get(container, "resources", "requests", name);
        return quantity(request == null ? get(container, "resources", "limits", name) : request);
    }

    // Parses an amount such as 1500m, 2Gi or 1e3; a missing one is 0.
    private static BigDecimal quantity(Object amount) {
        if (amount == null) return BigDecimal.ZERO;
        if (amount instanceof BigDecimal number) return number;
        var text = (String) amount;
        var number = text.replaceFirst("[numkKMGTPE]?i?$", "");
        var suffix = text.substring(number.length());
        if (suffix.isEmpty()) return new BigDecimal(number);
        int power = "num kMGTPE".indexOf(suffix.substring(0, 1).replace("K", "k")) - 3;
        if (suffix.endsWith("i")) return new BigDecimal(number).multiply(BigDecimal.valueOf(1024).pow(power));
        return new BigDecimal(number).scaleByPowerOfTen(3 * power);
    }

    private static Object ok(Object result) {
        return Map.of("ok", result);
    }

    private static Object unsupported(String what) {
        return Map.of("unsupported", Map.of("what", what));
    }

    private static Object refusedStart(String message) {
        return Map.of("refused", Map.of("stage", "cpu", "message", message));
    }

    private static List<String> names(Object pod) {
        return list(get(pod, "spec", "containers")).stream().map(one -> text(get(one, "name"), "")).toList();
    }

    private static List<Integer> exclusive(Map<String, Map<String, List<Integer>>> pods) {
        return pods.values().stream().flatMap(own -> own.values().stream()).flatMap(List::stream).toList();
    }

    private static List<Integer> without(List<Integer> cpus, List<Integer> others) {
        return cpus.stream().filter(cpu -> !others.contains(cpu)).toList();
    }

    private static String listed(List<Integer> cpus) {
        return cpus.stream().sorted().map(String::valueOf).collect(Collectors.joining(","));
    }

    // The value at a path of names in JSON objects; null if it is missing.
    private static Object get(Object from, String... path) {
        for (var name : path) from = from instanceof Map<?, ?> object ? object.get(name) : null;
        return from;
    }

    private static List<?> list(Object value) {
        return value == null ? List.of() : (List<?>) value;
    }

    private static List<Integer> integers(Object value) {
        return list(value).stream().map(one -> ((BigDecimal) one).intValueExact()).toList();
    }

    private static String text(Object value, String missing) {
        return value == null ? missing : (String) value;
    }

    private Object answer(String operation, Object args) {
        try {
            var answer = switch (operation) {
                case "hello" -> ok(HELLO);
                case "start" -> start(args);
                case "admit" -> admit(args);
                case "remove" -> remove(args);
                case "state" -> state();
                default -> unsupported("operation " + operation);
            };
            save();
            return answer;
        } catch (Exception error) {
            var trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            return Map.of("fault", Map.of("message", error.toString(), "trace", trace.toString()));
        }
    }

    public static void main(String[] arguments) throws IOException {
        var adapter = new Adapter();
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (var line = requests.readLine(); line != null; line = requests.readLine()) {
            var request = Json.parse(line);
            var answer = new LinkedHashMap<String, Object>();
            answer.put("id", get(request, "id"));
            ((Map<?, ?>) adapter.answer(text(get(request, "op"), ""), get(request, "args")))
                .forEach((name, value) -> answer.put((String) name, value));
            answers.println(Json.write(answer));
        }
    }
}

/** Reads and writes JSON as Map, List, String, BigDecimal, Boolean and null. */
class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        var json = new Json(text);
        var value = json.value();
        if (json.next() != 0) throw json.error();
        return value;
    }

    private char next() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skip(String word) {
        next();
        if (!text.startsWith(word, at)) return false;
        at += word.length();
        return true;
    }

    private void expect(String word) {
        if (!skip(word)) throw error();
    }

    private IllegalArgumentException error() {
        return new IllegalArgumentException("not JSON at character " + (at + 1));
    }

    private Object value() {
        if (skip("{")) {
            var object = new LinkedHashMap<String, Object>();
            while (!skip("}")) {
                if (!object.isEmpty()) expect(",");
                expect("\"");
                var name = string();
                expect(":");
                object.put(name, value());
            }
            return object;
        }
        if (skip("[")) {
            var list = new ArrayList<Object>();
            while (!skip("]")) {
                if (!list.isEmpty()) expect(",");
                list.add(value());
            }
            return list;
        }
        if (skip("\"")) return string();
        if (skip("true")) return true;
        if (skip("false")) return false;
        if (skip("null")) return null;
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) at++;
        if (from == at) throw error();
        return new BigDecimal(text.substring(from, at));
    }

    private String string() {
        var made = new StringBuilder();
        while (at < text.length()) {
            char one = text.charAt(at++);
            if (one == '"') return made.toString();
            if (one != '\\') {
                made.append(one);
                continue;
            }
            char escaped = text.charAt(at++);
            int known = "bfnrt".indexOf(escaped);
            if (escaped == 'u') {
                made.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else made.append(known < 0 ? escaped : "\b\f\n\r\t".charAt(known));
        }
        throw error();
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> object)
            return object.entrySet().stream()
                .map(one -> quoted(one.getKey()) + ":" + write(one.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof List<?> list)
            return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        if (value instanceof String) return quoted(value);
        return value instanceof BigDecimal number ? number.toPlainString() : String.valueOf(value);
    }

    private static String quoted(Object value) {
        var made = new StringBuilder("\"");
        for (char one : value.toString().toCharArray()) {
            if (one == '"' || one == '\\') made.append('\\').append(one);
            else if (one < ' ') made.append(String.format("\\u%04x", (int) one));
            else made.append(one);
        }
        return made.append('"').toString();
    }
}
