// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live policy and what carries it: kernel half, sysctls, routes.

use anyhow::{Context, Result, anyhow, ensure};
use fatpath_api::{Applied, MeasuredRule, TuneQuery, TunedByHand, TunedFlow};
use fatpath_archive::{Kind, rfc3339};
use fatpath_host::Host;
use fatpath_kernel::{Kernel, KernelError, Published, Takeover, cgroup_id, laws_of_others};
use fatpath_policy::{AutoMode, Classifier, Policy, RUDE_LAW, RouteMetrics, Rule, routes};
use fatpath_trace::Traces;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Instance;
use crate::archive::{Archive, flow_tuned, learned_applied, policy_applied};
use crate::by_hand::{ByHand, Ends};
use crate::instruments::Instruments;
use crate::missing;
use crate::options::DaemonOptions;
use crate::paths::{Autotuned, Learned, Measured, PathsState, most_buffer_bytes, rule_measured};
use crate::phases::PhasesState;
use crate::policy_file::read_policy_file;

/// Of sysctls on buffers, which the kernel doubles.
const MOST_MAXIMUM_BYTES: u64 = (1 << 30) - 1;

/// Flows that are tuned by hand are looked up so often, and are given something for a day at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
const MOST_BY_HAND_S: u64 = 86_400;

/// The one owner of what fatpath changes.
pub(crate) struct Engine {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) host: Host,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) archive: Arc<Archive>,
    pub(crate) paths: Arc<PathsState>,
    pub(crate) phases: Arc<PhasesState>,
    pub(crate) traces: Arc<Traces>,
    pin_dir: PathBuf,
    /// What is live.
    pub(crate) policy: Policy,
    /// The rules of learned paths.
    learned: Policy,
    by_hand: ByHand,
    /// The kernel half may have other rules for these than are known.
    is_by_hand_due: bool,
    looked_by_hand: Instant,
    /// Name of the file that the live policy came from.
    pub(crate) policy_file: String,
    cgroups: Vec<(String, Option<u64>)>,
    /// Of the live policy's routes.
    metrics: Vec<RouteMetrics>,
}

impl Engine {
    /// Loads or takes over the kernel half and makes the policy of the file live. A bad file is refused
    /// before anything is touched.
    pub(crate) fn start(
        instance: &Instance,
        options: &DaemonOptions,
        archive: Arc<Archive>,
    ) -> Result<(Engine, Applied)> {
        let policy = read_policy_file(&options.policy)?;
        let name = options.policy.display().to_string();
        let mut host = Host::open(&instance.run_dir)?;
        if !fatpath_kernel::bpffs_is_mounted() {
            mount_bpffs(&mut host)?;
        }
        refuse_laws_of_others(&policy, &instance.places.pin_dir)?;
        let (kernel, takeover, missing) = Kernel::load(instance.places.clone(), &policy)?;
        if options.whole {
            missing::refuse(&missing)?;
        }
        let kernel = Arc::new(kernel);
        let mut engine = Engine {
            instruments: Arc::new(Instruments::new(Arc::clone(&kernel))),
            archive,
            paths: Arc::default(),
            phases: Arc::default(),
            traces: Arc::default(),
            kernel,
            host,
            pin_dir: instance.places.pin_dir.clone(),
            policy: Policy::default(),
            learned: Policy::default(),
            by_hand: ByHand::default(),
            is_by_hand_due: false,
            looked_by_hand: Instant::now(),
            policy_file: String::new(),
            cgroups: Vec::new(),
            metrics: Vec::new(),
        };
        let mut applied = engine.apply(policy, &name)?;
        applied.notes.insert(0, describe(&takeover).to_owned());
        applied.notes.extend(missing::notes(&missing));
        Ok((engine, applied))
    }

    /// Makes a policy live. What fails after the kernel took it is a note, not an error.
    pub(crate) fn apply(&mut self, policy: Policy, file: &str) -> Result<Applied> {
        let rules = policy.rules.len();
        let measured = self.paths.measured_for(&policy);
        let policy = with_measured(&policy, &measured)?;
        let warnings = policy.warnings.iter();
        let mut notes: Vec<String> = warnings.map(|it| it.warning_in(file)).collect();
        if self.by_hand.before(&policy, &self.learned).is_err() {
            self.by_hand = ByHand::default();
            notes.push("flows that were tuned by hand are not any more: the policy leaves no place for their rules".to_owned());
        }
        let made = self.make_live(policy.clone())?;
        notes.extend(made.notes);
        if policy.auto.mode != AutoMode::Tune {
            self.learned = Policy::default();
            let forgotten = self.kernel.forget_paths();
            notes.extend(
                forgotten
                    .err()
                    .map(|error| format!("learned paths: {error}")),
            );
        }
        if self.kernel.has_instruments() {
            let set = self.kernel.set_instruments(&policy.instruments);
            notes.extend(set.err().map(|error| format!("the instruments: {error}")));
        } else if !policy.traces.is_empty() {
            let note = "no flow is traced, because this kernel did not take the instruments";
            notes.push(note.to_owned());
        }
        self.archive.set_policy(policy.archive);
        let autotuned = Autotuned::of(&self.host);
        self.paths.set_policy(policy.auto, autotuned);
        self.set_measured(measured);
        self.phases.set_policy(&policy.phases);
        self.policy_file = file.to_owned();
        let applied = Applied {
            rules,
            live_flows_met: made.live_flows_met,
            notes,
        };
        self.archive
            .put(Kind::Decision, policy_applied(file, &applied));
        Ok(applied)
    }

    /// Rules whose path is measured give what follows from it, to live flows, too. Answers whether anything has changed.
    /// Asked here, where no other policy can become live meanwhile: what is measured is for the rules of one policy.
    pub(crate) fn follow_measured(&mut self) -> Result<bool> {
        let Some(measured) = self.paths.measured_anew() else {
            return Ok(false);
        };
        let policy = with_measured(&self.policy, &measured)?;
        for note in self.make_live(policy)?.notes {
            tracing::info!("measured paths: {note}");
        }
        self.set_measured(measured);
        Ok(true)
    }

    /// The rules whose path is measured, and what they go by.
    pub(crate) fn measured_rules(&self) -> Vec<MeasuredRule> {
        let rule = |rule: &Rule| MeasuredRule {
            rule: rule.name.clone(),
            rtt_us: rule.path.rtt_us,
            rate_bps: rule.path.rate_bps,
            by: rule.path.follows.by.clone(),
            since: self.paths.measured_since_us(&rule.name).map(rfc3339),
        };
        self.policy.measured_rules().map(rule).collect()
    }

    fn set_measured(&self, measured: Measured) {
        for (rule, now, before) in self.paths.set_measured(measured) {
            let event = rule_measured(&rule, &now, before.as_ref());
            tracing::info!("measured paths: rule {rule}: {}", event.body);
            self.archive.put(Kind::Decision, event);
        }
    }

    /// Flows that no rule of the file matches get this from now on, live ones at their next round trip.
    pub(crate) fn tune_learned(&mut self, learned: Learned) -> Result<()> {
        if self.policy.auto.mode != AutoMode::Tune {
            return Ok(());
        }
        let has_other_rules = learned.rules != self.learned;
        if has_other_rules {
            refuse_laws_of_others(&learned.rules, &self.pin_dir)?;
            self.host.raise(&learned.rules.host)?;
        }
        learned.write(&self.kernel)?;
        if !has_other_rules {
            return Ok(());
        }
        let paths = learned.paths.len();
        self.learned = learned.rules;
        match self.by_hand.is_empty() {
            true => self.name_rules()?,
            // What these have besides may be of rules that were learned.
            false => self.make_live(self.policy.clone()).map(drop)?,
        }
        let rules = self.learned.rules.iter();
        let rules: Vec<&str> = rules.map(|rule| rule.name.as_str()).collect();
        tracing::info!("learned paths: {} sets of settings", rules.len());
        self.archive
            .put(Kind::Decision, learned_applied(&rules, paths));
        Ok(())
    }

    /// The instruments judge flows by what their rules give; traces choose them by their rules.
    fn name_rules(&self) -> Result<()> {
        let all = self.by_hand.before(&self.policy, &self.learned)?;
        let all = all.followed_by(&self.learned);
        let names = self.kernel.rule_names()?;
        let of_file = names.iter().filter_map(|(id, name)| {
            let name = self.by_hand.base_of(name)?;
            Some((*id, name.to_owned()))
        });
        self.traces
            .set_policy(&self.policy.traces, of_file.collect());
        self.instruments.set_policy(&all, names);
        Ok(())
    }

    /// The kernel half, the sysctls, the routes and the instruments follow a policy.
    fn make_live(&mut self, policy: Policy) -> Result<Applied> {
        let all = self.by_hand.before(&policy, &self.learned)?;
        refuse_laws_of_others(&all, &self.pin_dir)?;
        let mut notes = self.host.raise(&policy.host)?;
        if policy.auto.mode == AutoMode::Tune {
            let most_bytes = most_buffer_bytes().min(MOST_MAXIMUM_BYTES);
            match self.host.raise_maxima(most_bytes as u32) {
                Ok(said) => notes.extend(said),
                Err(error) => notes.push(format!("the maxima of buffers stay: {error}")),
            }
        }
        let tables = Classifier::build(&all);
        let published = self.publish(&all, &tables)?;
        let absent = published.absent_cgroups.iter();
        notes.extend(absent.map(|path| {
            format!("cgroup {path} does not exist now: its rules match no flow until it does")
        }));
        let users = published.absent_users.iter();
        notes.extend(users.map(|user| {
            format!("rude_users: no such user on this host: {user}; the name permits nobody")
        }));
        notes.extend(published.problems.iter().cloned());
        if published.walked.passed_over > 0 {
            let namespaces = published.walked.passed_over;
            notes.push(format!(
                "{namespaces} network namespaces cannot be entered (without CAP_SYS_ADMIN): their live flows stay as they are"
            ));
        }
        self.metrics = routes(&all, &tables);
        match self.host.set_routes(&self.metrics) {
            Ok(said) => notes.extend(said),
            Err(error) => notes.push(error.to_string()),
        }
        self.policy = policy;
        self.name_rules()?;
        Ok(Applied {
            rules: self.policy.rules.len(),
            live_flows_met: published.walked.changed,
            notes,
        })
    }

    fn publish(&mut self, policy: &Policy, tables: &Classifier) -> Result<Published> {
        let cgroups = cgroups_of(policy);
        let published = self
            .kernel
            .publish(policy, tables)
            .context("the previous policy stays in force")?;
        self.cgroups = cgroups;
        Ok(published)
    }

    /// What the live policy wants of routes.
    pub(crate) fn metrics(&self) -> &[RouteMetrics] {
        &self.metrics
    }

    /// Routes that changed get their metrics again.
    pub(crate) fn follow_routes(&mut self) -> Result<Vec<String>> {
        Ok(self.host.follow_routes(&self.metrics)?)
    }

    /// A cgroup that came or went since has another id: the policy is published again. Cgroups of
    /// `fatpath rude run` go when they are empty.
    pub(crate) fn follow_host(&mut self) -> Result<()> {
        self.kernel.tidy_rude_runs()?;
        self.kernel.follow_marks()?;
        if let Err(error) = self.end_by_hand() {
            tracing::error!("flows tuned by hand: {error:#}");
        }
        let live = self.by_hand.before(&self.policy, &self.learned)?;
        if cgroups_of(&live) != self.cgroups {
            self.publish(&live, &Classifier::build(&live))?;
        }
        Ok(())
    }

    /// A live flow is given settings by hand, besides what its rule gives; without any it has what its rule gives.
    pub(crate) fn tune_flow(&mut self, asked: &TuneQuery) -> Result<TunedByHand> {
        let ends = [asked.local, asked.remote].map(canonical);
        let before = self.by_hand.clone();
        let is_end = asked.settings.trim().is_empty();
        if is_end {
            ensure!(
                self.by_hand.take_back(ends),
                "nobody tuned this flow by hand"
            );
        } else {
            let until = asked.for_s.map(until).transpose()?;
            let rule = self.flow(ends)?.and_then(|flow| flow.rule);
            let base = rule.and_then(|name| self.base(&name).cloned());
            self.by_hand
                .give(ends, &asked.settings, base.as_ref(), until)?;
        }
        let tuned = self.publish_by_hand(ends, is_end);
        match &tuned {
            Ok(_) => self.archive.put(Kind::Decision, flow_tuned(asked)),
            Err(_) => {
                self.by_hand = before;
                self.is_by_hand_due = true;
            }
        }
        tuned
    }

    fn publish_by_hand(&mut self, ends: Ends, is_end: bool) -> Result<TunedByHand> {
        let notes = self.make_live(self.policy.clone())?.notes;
        let flow = self.flow(ends)?;
        match &flow {
            Some(flow) => self.by_hand.is_seen(ends, flow.flow.cookie),
            None => ensure!(is_end, "no live flow from {} to {}", ends[0], ends[1]),
        }
        Ok(TunedByHand { flow, notes })
    }

    fn flow(&self, ends: Ends) -> Result<Option<TunedFlow>> {
        let mut flows = self.kernel.flows()?;
        flows.retain(|flow| [flow.flow.local, flow.flow.remote] == ends);
        ensure!(
            flows.len() <= 1,
            "{} flows have these ends, in different network namespaces",
            flows.len()
        );
        Ok(flows.pop())
    }

    /// The rule that a flow has, or has below what it was given by hand.
    fn base(&self, name: &str) -> Option<&Rule> {
        let name = self.by_hand.base_of(name)?;
        let mut rules = self.policy.rules.iter().chain(&self.learned.rules);
        rules.find(|rule| rule.name == name)
    }

    /// Flows whose time is over, or that ended, are forgotten; who has ended is looked up less often.
    fn end_by_hand(&mut self) -> Result<()> {
        if !self.by_hand.is_empty() {
            let now = Instant::now();
            let is_look = now.duration_since(self.looked_by_hand) >= LOOK_INTERVAL;
            let live: Option<HashSet<u64>> = match is_look {
                true => Some(
                    self.kernel
                        .flows()?
                        .iter()
                        .map(|flow| flow.flow.cookie)
                        .collect(),
                ),
                false => None,
            };
            if is_look {
                self.looked_by_hand = now;
            }
            let is_live = live.as_ref().map(|live| |cookie| live.contains(&cookie));
            for [local, remote] in self.by_hand.end(now, is_live) {
                self.archive
                    .put(Kind::Decision, flow_tuned(&TuneQuery::end(local, remote)));
                self.is_by_hand_due = true;
            }
        }
        if self.is_by_hand_due {
            self.make_live(self.policy.clone())?;
            self.is_by_hand_due = false;
        }
        Ok(())
    }

    /// Before the daemon ends: nobody would end it later.
    pub(crate) fn forget_by_hand(&mut self) -> Result<()> {
        if self.by_hand.is_empty() {
            return Ok(());
        }
        self.by_hand = ByHand::default();
        self.make_live(self.policy.clone()).map(drop)
    }
}

/// What the file means with what is measured.
fn with_measured(policy: &Policy, measured: &Measured) -> Result<Policy> {
    policy
        .with_measured(&measured.values())
        .map_err(|problems| {
            let problem = problems.first().map(ToString::to_string);
            anyhow!("{}", problem.unwrap_or_default())
        })
}

/// As the kernel half tells addresses.
fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

fn until(for_s: u64) -> Result<Instant> {
    ensure!(
        (1..=MOST_BY_HAND_S).contains(&for_s),
        "for_s is 1 to {MOST_BY_HAND_S}"
    );
    Ok(Instant::now() + Duration::from_secs(for_s))
}

/// The code of a law reads the policy of the instance that registered it, so here its flows would run
/// with the initial parameters.
fn refuse_laws_of_others(policy: &Policy, own_pins: &Path) -> Result<(), KernelError> {
    let is_named = |law: &str| {
        policy.rules.iter().any(|rule| {
            let chosen = rule.settings.law();
            chosen.is_some_and(|chosen| chosen.name() == law)
                || rule.settings.may_be_rude() && law == RUDE_LAW
        })
    };
    let mut others = laws_of_others(own_pins).into_iter();
    match others.find(|other| is_named(&other.law)) {
        None => Ok(()),
        Some(other) => Err(other.into()),
    }
}

/// Noted before it is made, as every change to the host.
fn mount_bpffs(host: &mut Host) -> Result<()> {
    let at = fatpath_kernel::bpffs();
    host.note_mount(at.clone())?;
    let mounted = fatpath_kernel::mount_bpffs();
    if mounted.is_err() {
        host.forget_mount(at)?;
    }
    Ok(mounted?)
}

fn cgroups_of(policy: &Policy) -> Vec<(String, Option<u64>)> {
    let paths = policy
        .rules
        .iter()
        .filter_map(|rule| rule.matches.cgroup.clone());
    paths.map(|path| (path.clone(), cgroup_id(&path))).collect()
}

fn describe(takeover: &Takeover) -> &'static str {
    match takeover {
        Takeover::Kept => "took over what an earlier daemon pinned",
        Takeover::Replaced => {
            "replaced what another build, or a load that was cut short, had pinned; flows went on"
        }
        _ => "loaded",
    }
}
